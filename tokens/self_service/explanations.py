"""`POST /api/v1/logins/{reference}/explanation`: a client reads the checks of one of its logins."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from tokens.answers.response import help_url
from tokens.explanation import explain
from tokens.http import rfc3339
from tokens.login_events.reference import find_login
from tokens.models import LoginEvent
from tokens.self_service.view import SelfServiceView

# The same for a login of another client and for one that does not exist: it shows neither.
_NOT_FOUND = (
    "No login of this client has this reference. Send the correlationId of one of its logins."
    " Answers with 429 and 503 are not recorded, and old logins are deleted."
)


class ExplanationView(SelfServiceView):
    """Every check of a login, passed or failed, and what to do."""

    http_method_names = ("post",)

    def post(self, request: Request, reference: str) -> Response:
        """As `explain_login`, in the texts that are public; a body is not read."""
        client = self.caller.login.client
        try:
            event = find_login(reference)
        except ValueError:
            event = None
        if event is None or event.client_id != client.client_id:
            raise NotFound(_NOT_FOUND)
        return Response(_as_json(event, is_authenticated=event.system_user_id == client.id))


def _as_json(event: LoginEvent, *, is_authenticated: bool) -> dict[str, Any]:
    """Its taxpayer is shown if its secret matched: any caller may have sent only the id."""
    explanation = explain(event)
    return {
        "reference": str(event.pk),
        "at": rfc3339(event.at),
        "outcome": event.reason or "issued",
        "explanation": explanation.outcome,
        "subject": (is_authenticated and event.subject) or None,
        "actor": event.actor or None,
        "scope": event.scope or None,
        "checks": [
            {"question": result.question, "state": result.state, "advice": result.advice or None}
            for result in explanation.results
        ],
        "help": help_url(event.reason) if event.reason else None,
    }


explanation = ExplanationView.as_view()
