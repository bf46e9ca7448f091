"""`/api/v1/representatives`: who may act for the client's own taxpayer; a taxpayer ends it here."""

from datetime import timedelta
from typing import Any

from django.db.models import Max, Q
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from taxpayers.evidence import Evidence, EvidenceKind, shown
from taxpayers.models import GrantedPermission
from taxpayers.services import revoke_permission
from taxpayers.services.granted_permissions import codes_of
from tokens.http import rfc3339, rfc3339_or_none
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.self_service.view import OwnTaxpayerView

SCOPE = "RepresentativeAPI"  # to end a permission; to see them every own token is enough
PAGE_SIZE = 100
LOOKBACK = timedelta(days=30)
CAPACITY = "system user of the taxpayer"
_DIGITS = 18
_NOT_FOUND = "The taxpayer of this client has granted no such permission."
_REASON = "Ended by the taxpayer's own system user, with the token of login {login}"


class _View(OwnTaxpayerView):
    def as_json(self, row: GrantedPermission, used: dict[str, Any]) -> dict[str, Any]:
        """A permission that this taxpayer has granted, and how it was proved."""
        agent = row.intermediary.taxpayer
        last_use = used.get(str(agent.identifier))
        return {
            "id": row.pk,
            "intermediary": str(agent.identifier),
            "intermediary_name": agent.name,
            "permissions": codes_of(row),
            "state": row.state(self.caller.at),
            "valid_from": rfc3339(row.valid_from),
            "valid_until": rfc3339_or_none(row.valid_until),
            "revoked_at": rfc3339_or_none(row.revoked_at),
            "first_used_at": rfc3339_or_none(row.first_used_at),
            "last_used_at": rfc3339_or_none(last_use),  # within 30 days
            "evidence": shown(row.evidence),
        }

    def last_uses(self) -> dict[str, Any]:
        """When each intermediary last got a token for this taxpayer, within 30 days; one query."""
        logins = LoginEvent.objects.filter(
            subject=str(self.caller.login.client.taxpayer),
            pk__gte=first_id(self.caller.at - LOOKBACK),
            reason="",
        )
        return dict(logins.exclude(actor="").values_list("actor").annotate(Max("at")).order_by())

    def granted(self) -> Any:
        """Every permission of this taxpayer."""
        rows = GrantedPermission.objects.filter(taxpayer__system_users=self.caller.login.client.id)
        return rows.select_related("intermediary__taxpayer").prefetch_related("codes")


class RepresentativesView(_View):
    """Those in force or to come, the oldest first."""

    http_method_names = ("get", "head")

    def get(self, request: Request) -> Response:
        not_over = Q(valid_until=None) | Q(valid_until__gte=self.caller.at)
        rows = self.granted().filter(not_over, revoked_at=None)
        page, used = self.page(request, rows, ("pk",), PAGE_SIZE), self.last_uses()
        return Response(
            {
                "taxpayer": str(self.caller.login.client.taxpayer),
                "representatives": [self.as_json(row, used) for row in page.rows],
                "next_cursor": page.next_cursor,
            }
        )


class RepresentativeView(_View):
    """One permission, to end it now and for good."""

    http_method_names = ("delete",)
    scope = SCOPE

    def delete(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        """It ends, and never approves. Safe to repeat."""
        is_number = id.isascii() and id.isdecimal() and len(id) <= _DIGITS
        row = self.granted().filter(pk=int(id)).first() if is_number else None
        if row is None:
            raise NotFound(_NOT_FOUND)
        token, user = self.caller.token, self.system_user
        revoke_permission(
            permission=row,
            evidence=Evidence(
                EvidenceKind.OWN_CLIENT,
                approved_by=token.client_id,
                capacity=CAPACITY,
                sign_in_method=user.login_method,
            ),
            reason=_REASON.format(login=token.jti),
            by=self.author,
            at=self.caller.at,
        )
        return Response(self.as_json(self.granted().get(pk=row.pk), self.last_uses()))


representatives, representative = RepresentativesView.as_view(), RepresentativeView.as_view()
