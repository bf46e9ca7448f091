"""Every permission that can be granted, alone and together with up to two others (contract 1).

Each begins before, at or after the login; ends before, at or after it, or never; was revoked before
or after its end, at the login, later by a clock that is ahead, or never.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

from msgspec.structs import replace

from taxpayers.facts.validity import is_in_force
from taxpayers.facts.values import Facts, PermissionFacts, RepresentedFacts
from taxpayers.rules import Authorization, AuthorizationRequest, Refused, decide
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


# "Old" was known once, and a client may still hold it. "?" was never known.
KNOWN = [("A", "B"), ("B", "A"), ("A",), ()]
HELD = [held for count in range(4) for held in combinations(("A", "B", "Old"), count)]
SOME = [asked for count in (1, 2, 3) for asked in product(("A", "B", "Old", "?"), repeat=count)]
ASKED = [None, *SOME]

Scopes = tuple[str, ...]
Case = tuple[Scopes | None, Scopes, Scopes]
CASES: list[Case] = list(product(ASKED, KNOWN, HELD))


def decided(asked: Scopes | None, known: Scopes, held: Scopes) -> Authorization | Refused:
    facts = Facts(replace(IN_ORDER.client.facts, scopes=held), IN_ORDER.secret.facts)
    try:
        return decide(AuthorizationRequest(facts, asked, known, AT))
    except Refused as refused:
        return refused


def tokens() -> Iterator[tuple[Case, Authorization]]:
    for case in CASES:
        outcome = decided(*case)
        if isinstance(outcome, Authorization):
            yield case, outcome


def test_a_scope_is_granted_if_it_is_asked_for_known_and_held() -> None:
    for (asked, known, held), token in tokens():
        wanted = known if asked is None else asked
        assert set(token.scopes) == set(wanted) & set(known) & set(held)
        in_order = [scope for scope in dict.fromkeys(wanted) if scope in token.scopes]
        assert list(token.scopes) == in_order, "each once, as asked for"


def test_an_unknown_scope_is_refused_and_named_and_so_is_nothing_left() -> None:
    for asked, known, held in CASES:
        unknown = next((scope for scope in asked or () if scope not in known), "")
        wanted = set(known if asked is None else asked)
        is_refused = bool(unknown) or not wanted & set(held) & set(known)
        outcome = decided(asked, known, held)
        assert isinstance(outcome, Refused) is is_refused, (asked, known, held)
        if isinstance(outcome, Refused):
            found = (outcome.reason, outcome.since, outcome.parameter, outcome.detail)
            assert found == ("invalid_scope", None, "scope", unknown)


def test_a_client_is_told_its_scopes_if_they_are_not_what_it_asked_for() -> None:
    for (asked, _, _), token in tokens():
        assert token.asked_scopes == asked
        assert token.scopes_differ is (asked is None or set(asked) != set(token.scopes))
