"""A month of logins as ERP systems make them: once an hour while people work (contract 5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from django.utils import timezone

from taxpayers.models import Credential, RateLimitCounter, Taxpayer
from taxpayers.rules import RegistryReason
from taxpayers.services import IssuedSecret
from tokens.login_events.counting import count_all
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.rate_limits.quota import WINDOW
from tokens.refusals.table import ProtocolReason

_DAYS = 30
_SATURDAY = 5
_OPENS, _CLOSES = 8, 19
_HOUR = timedelta(hours=1)
_BATCH = 500
_AGENTS = (
    "SAP NetWeaver Application Server",
    "Java/17.0.12",
    "python-requests/2.32.3",
    "GuzzleHttp/7",
    "Odoo/18.0",
    "RestSharp/112.1.0.0",
)
# Refusals of callers that match no system user: strangers, and first attempts of developers.
_STRANGERS = (
    (ProtocolReason.INVALID_CREDENTIALS, "", "", 5),
    (ProtocolReason.MALFORMED_CREDENTIALS, "client_secret", "placeholder", 3),
    (ProtocolReason.MALFORMED_CREDENTIALS, "client_id", "cut_off", 2),
    (ProtocolReason.MISSING_PARAMETER, "client_secret", "", 3),
    (ProtocolReason.UNSUPPORTED_GRANT_TYPE, "", "", 2),
    (ProtocolReason.MALFORMED_ON_BEHALF_OF, "", "there is no ROB number after the colon", 2),
)


@dataclass(slots=True)
class SampleClient:
    """`refused`: why every login is refused, and since when; the answer names this moment."""

    issued: IssuedSecret
    works_at_night: bool
    for_taxpayer: Taxpayer | None = None
    refused: tuple[RegistryReason, datetime] | None = None
    exceeds_limit: bool = False

    @property
    def taxpayer(self) -> Taxpayer:
        return self.issued.system_user.taxpayer


def make_logins(clients: list[SampleClient], kid: str, chance: Random, at: datetime) -> None:
    """Stores the logins of the last 30 days, and counts them for the overview."""
    events = [event for client in clients for event in _of_client(client, kid, chance, at)]
    events += _of_strangers(chance, at)
    LoginEvent.objects.bulk_create(sorted(events, key=lambda e: e.id), batch_size=_BATCH)
    for client in clients:
        secret = client.issued.secret
        used = [e.at for e in events if e.secret_id == secret.pk and e.is_issued]
        if used:
            set_last_used(secret, max(used))
    count_all(at)


def set_last_used(secret: Credential, at: datetime) -> None:
    """Stores that this secret was last used at this moment."""
    counter = RateLimitCounter.objects.get(pk=secret.system_user_id)
    counter.secrets_used[str(secret.pk)] = at.isoformat()
    counter.save(update_fields=["secrets_used"])


def _of_client(
    client: SampleClient, kid: str, chance: Random, at: datetime
) -> Iterator[LoginEvent]:
    address = f"203.0.113.{chance.randrange(2, 250)}"
    agent = chance.choice(_AGENTS)
    for moment in _moments(client, chance, at):
        yield _event(client, moment, kid, chance, source_address=address, user_agent=agent)


def _moments(client: SampleClient, chance: Random, at: datetime) -> Iterator[datetime]:
    moment = at - timedelta(days=_DAYS) + chance.random() * _HOUR
    while moment < at:
        if client.works_at_night or _is_working_time(moment):
            yield moment
        refused = client.refused is not None and moment >= client.refused[1]
        # An ERP that is refused retries at irregular intervals.
        moment += (0.8 + 0.7 * chance.random() if refused else 0.93 + 0.1 * chance.random()) * _HOUR
    if client.exceeds_limit:  # a login for every call, until the limit of the minute
        limit = client.issued.system_user.logins_per_minute
        yield from (at - 2 * WINDOW + n * timedelta(seconds=2) for n in range(limit))


def _is_working_time(moment: datetime) -> bool:
    local = timezone.localtime(moment)
    return local.weekday() < _SATURDAY and _OPENS <= local.hour < _CLOSES


def _event(
    client: SampleClient, moment: datetime, kid: str, chance: Random, **facts: str
) -> LoginEvent:
    user, own = client.issued.system_user, client.taxpayer.identifier
    refused = client.refused if client.refused and moment >= client.refused[1] else None
    return LoginEvent(
        id=_id(moment, chance),
        at=moment,
        reason=refused[0] if refused else "",
        since=refused[1] if refused else None,
        client_id=user.client_id,
        system_user=user,
        secret_id=client.issued.secret.pk,
        subject=str(client.for_taxpayer.identifier if client.for_taxpayer else own),
        actor=str(own) if client.for_taxpayer else "",
        scope="" if refused else user.scopes,
        kid="" if refused else kid,
        **facts,
    )


def _of_strangers(chance: Random, at: datetime) -> Iterator[LoginEvent]:
    for reason, parameter, detail, times_a_day in _STRANGERS:
        for _ in range(times_a_day * _DAYS):
            moment = at - chance.random() * timedelta(days=_DAYS)
            yield LoginEvent(
                id=_id(moment, chance),
                at=moment,
                reason=reason,
                parameter=parameter,
                detail=detail,
                client_id="" if reason is ProtocolReason.MISSING_PARAMETER else "my-erp",
                source_address=f"198.51.100.{chance.randrange(2, 250)}",
                user_agent=chance.choice(_AGENTS),
            )


def _id(moment: datetime, chance: Random) -> UUID:
    """A UUIDv7 of this moment (RFC 9562 section 5.7)."""
    random = chance.getrandbits(12) << 64 | 0b10 << 62 | chance.getrandbits(62)
    return UUID(int=first_id(moment).int | 7 << 76 | random)
