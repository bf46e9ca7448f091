"""`GET /api/v1/statement`: who got a token for the client's own taxpayer, when, and with what."""

from datetime import timedelta
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from tokens.http import rfc3339
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.self_service.own_taxpayer import OwnTaxpayerView, moment_in
from tokens.self_service.view import parameters_of

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
        page = self.page(request, rows, "-pk", PAGE_SIZE)
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
