"""What a client reads of logins: the tokens for its taxpayer, and why one was refused."""

from datetime import timedelta
from typing import Any

from rest_framework.exceptions import NotFound, ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from tokens.answers.response import help_url
from tokens.explanation import explain
from tokens.http import rfc3339
from tokens.login_events.partitions import first_id
from tokens.login_events.reference import reference_in
from tokens.models import LoginEvent
from tokens.self_service.view import OwnTaxpayerView, SelfServiceView, moment_in, parameters_of

PAGE_SIZE = 500
USUAL, LONGEST = timedelta(days=30), timedelta(days=366)


class StatementView(OwnTaxpayerView):
    """Each token, the newest first; a refused login got none and is not here."""

    http_method_names = ("get", "head")

    def get(self, request: Request) -> Response:
        """One page of the time that was asked for; without `from` and `to`, the last 30 days."""
        given = parameters_of(request, "from", "to")
        end = moment_in(given.get("to"), "to", is_end=True) or self.caller.at
        start = moment_in(given.get("from"), "from") or end - USUAL
        if not timedelta(0) <= end - start <= LONGEST:
            raise ParseError(f"from must be before to, by at most {LONGEST.days} days.")
        subject = str(self.caller.login.client.taxpayer)
        rows = LoginEvent.objects.filter(
            subject=subject,
            reason="",
            pk__gte=first_id(start),
            pk__lt=first_id(end + timedelta(seconds=1)),
            at__gte=start,
            at__lte=end,
        )
        page = self.page(request, rows, ("-pk",), PAGE_SIZE)
        return Response(
            {
                "taxpayer": subject,
                "from": rfc3339(start),
                "to": rfc3339(end),
                "tokens": [_as_json(event) for event in page.rows],
                "next_cursor": page.next_cursor,
            }
        )


def _as_json(event: LoginEvent) -> dict[str, Any]:
    return {
        "reference": str(event.pk),
        "at": rfc3339(event.at),
        "intermediary": event.actor or None,  # null: a system user of the taxpayer itself
        "client_id": event.client_id,
        "scope": event.scope,
    }


statement = StatementView.as_view()


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
        key = reference_in(reference)
        event = LoginEvent.objects.filter(pk=key).first() if key else None
        if event is None or event.client_id != client.client_id:
            raise NotFound(_NOT_FOUND)
        return Response(_explained(event, is_authenticated=event.system_user_id == client.id))


def _explained(event: LoginEvent, *, is_authenticated: bool) -> dict[str, Any]:
    """Its taxpayer is shown if its secret matched: any caller may have sent only the id."""
    return {
        "reference": str(event.pk),
        "at": rfc3339(event.at),
        "outcome": event.reason or "issued",
        **explain(event).as_json(),
        "subject": (is_authenticated and event.subject) or None,
        "actor": event.actor or None,
        "scope": event.scope or None,
        "help": help_url(event.reason) if event.reason else None,
    }


explanation = ExplanationView.as_view()
