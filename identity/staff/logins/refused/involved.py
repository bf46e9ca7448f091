"""The records that a login concerns, its client's latest logins, and what staff may know of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model

from identity.staff.framework.badges import badge_of_credential
from identity.staff.framework.lists import Context
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import RegistryReason
from tokens.models import LoginEvent
from tokens.refusals.table import ProtocolReason


@dataclass(frozen=True, slots=True)
class Involved:
    """Each is None if there is no such record, or if the login did not ask for it."""

    event: LoginEvent
    secret: Credential | None = None
    system_user: SystemUser | None = None  # with the ID that was sent, also with a wrong secret
    role: Intermediary | None = None  # its taxpayer as an intermediary
    represented: Taxpayer | None = None  # the taxpayer that `onbehalfof` named
    permission: GrantedPermission | None = None  # the newest one that it granted to `role`

    @property
    def own_taxpayer(self) -> Taxpayer | None:
        return self.system_user.taxpayer if self.system_user else None

    @property
    def records(self) -> tuple[Model | None, ...]:
        """All but the login and its secret."""
        own = (self.system_user, self.own_taxpayer, self.role)
        return (*own, self.represented, self.permission)


def involved_in(event: LoginEvent) -> Involved:
    """The records of this login, in a few queries by key."""
    user = _system_user(event)
    secret = Credential.objects.filter(pk=event.secret_id).first() if event.secret_id else None
    if user is None or not event.is_on_behalf:
        return Involved(event, secret, user)
    role: Intermediary | None = getattr(user.taxpayer, "intermediary", None)
    named = subject_of(event)
    represented = Taxpayer.objects.filter(tin=named.tin, rob=named.rob).first()
    permission = None
    if role is not None and represented is not None:
        pair = GrantedPermission.objects.filter(taxpayer=represented, intermediary=role)
        newest = pair.select_related("taxpayer", "intermediary__taxpayer").order_by("-pk")
        permission = newest.prefetch_related("codes").first()
    return Involved(event, secret, user, role, represented, permission)


def subject_of(event: LoginEvent) -> TaxpayerId:
    """The taxpayer that the login represents, from the notation in which it is stored."""
    tin, _colon, rob = event.subject.partition(":")
    return TaxpayerId(tin, rob)


def _system_user(event: LoginEvent) -> SystemUser | None:
    users = SystemUser.objects.select_related("taxpayer__intermediary")
    if event.system_user_id is not None:
        return users.filter(pk=event.system_user_id).first()
    return users.filter(client_id=event.client_id).first() if event.client_id else None


MAX_LOGINS = 1_000


@dataclass(frozen=True, slots=True)
class LatestLogins:
    """The newest first; `has_more`: there are older ones that were not read."""

    rows: list[Any]
    has_more: bool = False

    def token_since(self, event: LoginEvent) -> Any:
        """Its latest login with a token after this one, for the same taxpayer where it is known."""
        pair = event.subject, event.actor
        since = (row for row in self.rows if not row.reason and row.pk > event.pk)
        same = (row for row in since if not event.subject or (row.subject, row.actor) == pair)
        return next(same, None)


def latest_logins(client_id: str) -> LatestLogins:
    """The latest logins under this client ID; none for an empty one."""
    if not client_id:
        return LatestLogins([])
    found = LoginEvent.objects.filter(client_id=client_id).order_by("-pk")
    names = ("pk", "at", "reason", "subject", "actor", "source_address", "user_agent")
    rows = list(found.values_list(*names, named=True)[: MAX_LOGINS + 1])
    return LatestLogins(rows[:MAX_LOGINS], has_more=len(rows) > MAX_LOGINS)


LATELY = timedelta(hours=24)
_REASONS = (
    ProtocolReason.MALFORMED_CREDENTIALS,
    ProtocolReason.INVALID_CREDENTIALS,
    RegistryReason.SECRET_EXPIRED,
    RegistryReason.SECRET_REVOKED,
)


def known_client(involved: Involved, latest: LatestLogins, at: datetime) -> Context | None:
    """The client with the ID that was sent; None if something else than credentials was wrong."""
    event, user = involved.event, involved.system_user
    if event.reason not in _REASONS or not event.client_id:
        return None
    refused = [row for row in latest.rows if row.reason and row.at >= at - LATELY]
    live = user.usable_credentials.filter(slot__isnull=False).order_by("-pk") if user else []
    return {
        "client_id": event.client_id,
        "system_user": user,  # None: no client has this ID
        # None: none of these logins got a token.
        "last_token_at": next((row.at for row in latest.rows if not row.reason), None),
        "has_older": latest.has_more,
        "max_logins": MAX_LOGINS,
        # In the last 24 hours, from so many addresses; there may be more.
        "refusals": len(refused),
        "addresses": len({row.source_address for row in refused}),
        "is_capped": latest.has_more and latest.rows[-1].at >= at - LATELY,
        "live_secrets": [
            (secret, badge_of_credential(secret, at)) for secret in live if secret.is_live(at)
        ],
    }
