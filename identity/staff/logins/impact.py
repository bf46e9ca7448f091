"""Impact of a change: the logins of the last 7 days that it would have refused."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.staff.framework.badges import facts_of
from taxpayers.facts.validity import was_in_force
from taxpayers.facts.values import PermissionFacts
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services.granted_permissions import codes_of
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

LOOKBACK = timedelta(days=7)
MAX_LOGINS = 1000


@dataclass(frozen=True, slots=True)
class Impact:
    """Of the newest logins that got a token, those that would have been refused."""

    refused: list[LoginEvent]
    reduced: int = 0  # how many others would have got fewer permissions
    has_more: bool = False  # there are more logins than were read


def impact_of(
    record: SystemUser | Taxpayer | Intermediary | GrantedPermission, at: datetime
) -> Impact:
    """Of blocking, deactivating or revoking it."""
    match record:
        case Intermediary():
            return _all_of(_issued(at, actor=str(record.taxpayer.identifier)))
        case SystemUser():
            return _all_of(_issued(at, client_id=record.client_id))
        case Taxpayer():
            identifier = str(record.identifier)
            found = [*_issued(at, subject=identifier), *_issued(at, actor=identifier)]
            by_key = {event.pk: event for event in found}
            return _all_of([by_key[key] for key in sorted(by_key, reverse=True)])
        case _permission:
            return _of_revoking(record, at)


def _all_of(logins: list[LoginEvent]) -> Impact:
    return Impact(logins[:MAX_LOGINS], has_more=len(logins) > MAX_LOGINS)


def _of_revoking(permission: GrantedPermission, at: datetime) -> Impact:
    """Logins on behalf of the taxpayer that no other permission would have allowed."""
    logins = _issued(
        at,
        subject=str(permission.taxpayer.identifier),
        actor=str(permission.intermediary.taxpayer.identifier),
    )
    facts = facts_of(permission, tuple(codes_of(permission)))
    covered = [event for event in logins[:MAX_LOGINS] if was_in_force(facts, event.at)]
    others = list(_others(permission))
    remaining = [(event, _codes(others, event.at)) for event in covered]
    refused = [event for event, codes in remaining if not codes]
    reduced = [event for event, codes in remaining if codes and not set(facts.codes) <= codes]
    return Impact(refused, reduced=len(reduced), has_more=len(logins) > MAX_LOGINS)


def _issued(at: datetime, **conditions: str) -> list[LoginEvent]:
    since = first_id(at - LOOKBACK)
    issued = LoginEvent.objects.filter(pk__gte=since, reason="", **conditions)
    return list(issued.order_by("-pk")[: MAX_LOGINS + 1])


def _others(permission: GrantedPermission) -> Iterable[PermissionFacts]:
    same_pair = GrantedPermission.objects.filter(
        taxpayer=permission.taxpayer_id, intermediary=permission.intermediary_id
    )
    for other in same_pair.exclude(pk=permission.pk).prefetch_related("codes"):
        yield facts_of(other, tuple(codes_of(other)))


def _codes(permissions: list[PermissionFacts], at: datetime) -> set[str]:
    return {code for facts in permissions if was_in_force(facts, at) for code in facts.codes}
