"""Each combination of scopes: asked for, known and held (contract 1, RFC 6749 section 3.3)."""

from collections.abc import Iterator
from itertools import combinations, product

from msgspec.structs import replace

from taxpayers.facts.values import Facts
from taxpayers.rules import Authorization, AuthorizationRequest, Refused, decide
from tests.rules.states import AT, IN_ORDER

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
    request = AuthorizationRequest(facts, asked, known, AT)
    try:
        return decide(request)
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
