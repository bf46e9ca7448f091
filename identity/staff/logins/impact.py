"""What a change would have refused, had it been made a week ago: asked before it is made.

Every query looks at the newest MOST_SEEN logins at most, and each is answered by one index.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.staff.framework.badges import facts_of
from taxpayers.facts.values import PermissionFacts
from taxpayers.models import GrantedPermission, SystemUser, Taxpayer
from taxpayers.rules import is_in_force
from taxpayers.services.permissions import codes_of
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent

LOOKED_BACK = timedelta(days=7)
MOST_SEEN = 1000
MOST_CLIENTS = 20
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Impact:
    """The logins that got a token and would have been refused; `narrowed` ones would permit less.

    `has_more` says that there were more logins than were looked at.
    """

    refused: list[LoginEvent]
    narrowed: int = 0
    has_more: bool = False

    @property
    def shown(self) -> list[LoginEvent]:
        return self.refused[:MOST_SHOWN]


def of_blocking(system_user: SystemUser, at: datetime) -> Impact:
    """Every login of the system user would have been refused."""
    seen = _seen(at, client_id=system_user.client_id)
    return Impact(seen[:MOST_SEEN], has_more=len(seen) > MOST_SEEN)


def of_deactivating(taxpayer: Taxpayer, at: datetime) -> Impact:
    """Every login for the taxpayer, whoever logged in, and every login of its own system users.

    Looks at the newest MOST_CLIENTS system users.
    """
    clients = taxpayer.system_users.order_by("-pk").values_list("client_id", flat=True)
    own = list(clients[: MOST_CLIENTS + 1])
    found = _seen(at, subject=str(taxpayer.identifier))
    # One query for each: only so does the index give the newest first. The actor has no index.
    for client_id in own[:MOST_CLIENTS]:
        found += _seen(at, client_id=client_id)
    by_key = {event.pk: event for event in found}
    seen = [by_key[key] for key in sorted(by_key, reverse=True)]
    return Impact(seen[:MOST_SEEN], has_more=len(seen) > MOST_SEEN or len(own) > MOST_CLIENTS)


def of_revoking(permission: GrantedPermission, at: datetime) -> Impact:
    """Logins on behalf of the taxpayer that no other permission would have allowed."""
    seen = _seen(
        at,
        subject=str(permission.taxpayer.identifier),
        actor=str(permission.intermediary.taxpayer.identifier),
    )
    facts = facts_of(permission, tuple(codes_of(permission)))
    relied = [event for event in seen[:MOST_SEEN] if is_in_force(facts, event.at)]
    others = list(_others(permission))
    refused = [event for event in relied if not _codes(others, event.at)]
    lost = {event.pk for event in relied if not set(facts.codes) <= _codes(others, event.at)} - {
        event.pk for event in refused
    }
    return Impact(refused, narrowed=len(lost), has_more=len(seen) > MOST_SEEN)


def _seen(at: datetime, **of: str) -> list[LoginEvent]:
    week = LoginEvent.objects.filter(pk__gte=first_id(at - LOOKED_BACK), reason="", **of)
    return list(week.order_by("-pk")[: MOST_SEEN + 1])


def _others(permission: GrantedPermission) -> Iterable[PermissionFacts]:
    same_pair = GrantedPermission.objects.filter(
        taxpayer=permission.taxpayer_id, intermediary=permission.intermediary_id
    )
    for other in same_pair.exclude(pk=permission.pk).prefetch_related("codes"):
        yield facts_of(other, tuple(codes_of(other)))


def _codes(permissions: list[PermissionFacts], at: datetime) -> set[str]:
    return {code for facts in permissions if is_in_force(facts, at) for code in facts.codes}
