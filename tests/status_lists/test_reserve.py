"""The indexes that a process has in reserve for first tokens: each is given once. Pure."""

from taxpayers.facts.values import StatusFacts
from tokens.calls import TakenIndex
from tokens.status_lists.assignment import NONE_RESERVED, RESERVE, ReservedIndexes

TAKEN = StatusFacts(1, 7, ("InvoicingAPI",))


def reserve_of(*numbers: int) -> ReservedIndexes:
    reserved = ReservedIndexes()
    reserved.add(TakenIndex(TAKEN, numbers))
    return reserved


def test_each_is_given_once_in_their_order_and_then_none() -> None:
    reserved = reserve_of(5, 3)
    reserved.add(TakenIndex(None, (9,)))
    given = [reserved.take() for _ in range(4)]
    assert [each and each[0] for each in given] == [5, 3, 9, None]


def test_versions_are_random_numbers_that_a_database_can_store() -> None:
    reserved = reserve_of(*range(500))
    versions = {version for _, version in iter(reserved.take, None)}
    assert len(versions) == 500
    assert 2**62 <= max(versions) < 2**63  # of a bigint, the sign apart, each bit is used


def test_a_login_that_must_ask_the_database_reserves_nothing() -> None:
    assert (NONE_RESERVED.take(), NONE_RESERVED.wanted) == (None, 0)
    assert ReservedIndexes().wanted == RESERVE > 100  # so nearly every first login finds one
