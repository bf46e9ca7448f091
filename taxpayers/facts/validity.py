"""Whether something of the registry holds at a moment. Pure.

Every `until` and `expires_at` is the last moment at which a thing still holds; every `from` is the
first.
"""

from datetime import datetime

from taxpayers.facts.values import Facts, IntermediaryFacts, PermissionFacts


def is_over(until: datetime | None, at: datetime) -> bool:
    """Whether the last moment has passed; None never passes."""
    return until is not None and at > until


def may_act_for_others(role: IntermediaryFacts, at: datetime) -> bool:
    """Whether the registration as an intermediary is active."""
    return role.is_active and not is_over(role.active_until, at)


def is_in_force(permission: PermissionFacts, at: datetime) -> bool:
    """From its first moment to its last, unless it is revoked, whatever the clock says."""
    return permission.revoked_at is None and was_in_force(permission, at)


def was_in_force(permission: PermissionFacts, at: datetime) -> bool:
    """Whether it was in force at a moment of the past, though it may be revoked since."""
    revoked = permission.revoked_at is not None and permission.revoked_at <= at
    return permission.valid_from <= at and not revoked and not is_over(permission.valid_until, at)


def next_end(facts: Facts, at: datetime) -> datetime | None:
    """The next last moment in these facts: until it has passed, no end is reached."""
    role, represented = facts.client.intermediary, facts.represented
    ends = [
        facts.credential.expires_at,
        facts.client.expires_at,
        role.active_until if role else None,
        *(p.valid_until for p in (represented.permissions if represented else ())),
    ]
    return min((end for end in ends if end is not None and end >= at), default=None)
