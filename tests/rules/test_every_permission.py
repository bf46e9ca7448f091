"""Every permission that can be granted, alone and together with up to two others (contract 1).

Each begins before, at or after the login; ends before, at or after it, or never; was revoked before
or after its end, at the login, later by a clock that is ahead, or never.
"""

from datetime import datetime
from functools import cache
from itertools import product
from typing import NamedTuple

from taxpayers.facts.validity import is_in_force
from taxpayers.facts.values import Facts, PermissionFacts, RepresentedFacts
from taxpayers.rules import AuthorizationRequest
from tests.rules.states import (
    AT,
    IN_ORDER,
    KNOWN_SCOPES,
    OTHER,
    OWN,
    Granted,
    Outcome,
    Refusal,
    ago,
    ahead,
    outcome_of,
)

# In microseconds from the login, from the most generous to the strictest.
BEGINS = (-100, 0, 100)
ENDS = (None, 300, 0, -50)
REVOKED = (None, 400, 200, 0, -40, -60)


class Kind(NamedTuple):
    """When a permission begins, ends, and was revoked."""

    begins: int
    ends: int | None
    revoked: int | None


# A permission begins before it ends: the database has no other.
KINDS = [
    Kind(begins, ends, revoked)
    for begins, ends, revoked in product(BEGINS, ENDS, REVOKED)
    if ends is None or begins < ends
]
# Each of three permissions is of one of these kinds, or is not granted.
CHOICES: list[Kind | None] = [*KINDS, None]
PLACES = (0, 1, 2)


@cache
def moment(microseconds: int, place: int) -> datetime:
    """The moments of no two permissions are the same, but for the moment of the login itself."""
    if not microseconds:
        return AT
    return ahead(microseconds + place) if microseconds > 0 else ago(place - microseconds)


def moments(kind: Kind, place: int) -> tuple[datetime, datetime | None, datetime | None]:
    return (
        moment(kind.begins, place),
        None if kind.ends is None else moment(kind.ends, place),
        None if kind.revoked is None else moment(kind.revoked, place),
    )


def code(place: int) -> str:
    return f"code:{place}"


@cache
def permission(kind: Kind, place: int) -> PermissionFacts:
    return PermissionFacts((code(place),), *moments(kind, place))


# --- What the contract says ---------------------------------------------------------------------
@cache
def alone(kind: Kind, place: int) -> Refusal | None:
    """The refusal of a login with this permission only; None if it is in force."""
    begins, ends, revoked = moments(kind, place)
    has_ended = ends is not None and ends < AT
    if revoked is not None:  # whatever the clock says, unless it had ended before
        if ends is not None and has_ended and ends < revoked:
            return Refusal("permission_expired", ends)
        return Refusal("permission_revoked", revoked)
    if has_ended:
        return Refusal("permission_expired", ends)
    return Refusal("permission_not_yet_valid", begins) if begins > AT else None


@cache
def end(kind: Kind, place: int) -> datetime:
    """Of a permission that has ended: its last moment or its revocation, whichever came first."""
    return min(end for end in moments(kind, place)[1:] if end is not None)


def expected(kinds: tuple[Kind | None, ...]) -> list[Outcome]:
    """The outcome; more than one if permissions ended at the same moment: then any of them."""
    granted = [(kind, place) for place, kind in enumerate(kinds) if kind is not None]
    if not granted:
        return [Refusal("no_permission")]
    refused = [(alone(*one), one) for one in granted]
    in_force = frozenset(code(place) for refusal, (_, place) in refused if refusal is None)
    if in_force:
        return [Granted(OTHER, OWN, frozenset(KNOWN_SCOPES), in_force)]
    to_come = [
        refusal for refusal, _ in refused if refusal and refusal.reason.endswith("not_yet_valid")
    ]
    if to_come:
        return [min(to_come, key=lambda refusal: refusal.since or AT)]
    last = max(end(*one) for one in granted)
    return [refusal for refusal, one in refused if refusal and end(*one) == last]


# --- What the service decides -------------------------------------------------------------------
@cache
def outcomes() -> dict[tuple[Kind | None, ...], Outcome]:
    return {kinds: _decided(kinds) for kinds in product(CHOICES, repeat=len(PLACES))}


def _decided(kinds: tuple[Kind | None, ...]) -> Outcome:
    granted = tuple(permission(kind, place) for place, kind in enumerate(kinds) if kind is not None)
    represented = RepresentedFacts(OTHER, is_active=True, permissions=granted)
    facts = Facts(IN_ORDER.client.facts, IN_ORDER.secret.facts, represented)
    return outcome_of(AuthorizationRequest(facts, None, KNOWN_SCOPES, AT))


def test_every_three_permissions_have_the_outcome_of_the_contract() -> None:
    """The codes of all that are in force; or one reason, with the right date, in any order."""
    assert len(KINDS) == 48
    assert len(outcomes()) == 49**3
    wrong = [(kinds, found) for kinds, found in outcomes().items() if found not in expected(kinds)]
    assert not wrong, f"{len(wrong)} cases, the first: {wrong[0]}"


def test_each_permission_is_in_force_if_it_alone_gives_a_token() -> None:
    for kind, place in product(KINDS, PLACES):
        assert is_in_force(permission(kind, place), AT) is (alone(kind, place) is None)
