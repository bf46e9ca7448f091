"""Which calls go together in one statement. Pure."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest

from taxpayers.facts.values import FactsQuery
from tests.lanes.calls import event
from tokens.calls import (
    AssertionUse,
    Call,
    CountedLogin,
    FailedAuthentication,
    FailedLogin,
    ProofUse,
    RejectedRequest,
)
from tokens.store.lanes import MAX_BATCH, Waiting, rows_of, take_batch

EVENT = event()


def login(client: int, assertion: int = 0, proof: int = 0) -> CountedLogin:
    uses = (AssertionUse(UUID(int=assertion), EVENT.at), ProofUse(UUID(int=proof), EVENT.at))
    return CountedLogin(
        EVENT, client, 1, 12, 7, uses[0] if assertion else None, uses[1] if proof else None
    )


def failure(pair: int, address: int) -> FailedLogin:
    return FailedLogin(EVENT, 2 * pair, 2 * address + 1)


def authentication(pair: int, address: int) -> FailedAuthentication:
    return FailedAuthentication(2 * pair, 2 * address + 1)


def rejection(bucket: int) -> RejectedRequest:
    return RejectedRequest(EVENT, bucket)


def waiting(calls: Sequence[Call]) -> deque[Waiting]:
    return deque(Waiting(call, 0.0, None) for call in calls)  # type: ignore[arg-type]


def batches(calls: Sequence[Call]) -> Iterator[list[Call]]:
    left = waiting(calls)
    while left:
        yield [one.call for one in take_batch(left)]


@pytest.mark.parametrize(
    ("calls", "taken"),
    [
        ([], []),
        ([login(1), login(2), login(3)], [[login(1), login(2), login(3)]]),
        ([login(2), login(1), login(2)], [[login(2), login(1), login(2)]]),
        # With the same assertion, or the same proof.
        ([login(1, 5), login(1, 5), login(2, 6)], [[login(1, 5), login(2, 6)], [login(1, 5)]]),
        ([login(1, 5, 7), login(2, 6, 7)], [[login(1, 5, 7)], [login(2, 6, 7)]]),
        # Of one caller, and of one address: their buckets are counted one after the other.
        ([failure(1, 1), failure(1, 1)], [[failure(1, 1)]] * 2),
        ([failure(1, 1), failure(2, 1)], [[failure(1, 1)], [failure(2, 1)]]),
        ([failure(1, 1), failure(1, 2)], [[failure(1, 1)], [failure(1, 2)]]),
        ([failure(1, 1), failure(2, 2)], [[failure(1, 1), failure(2, 2)]]),
        ([authentication(1, 1), authentication(2, 2), authentication(3, 1)],
         [[authentication(1, 1), authentication(2, 2)], [authentication(3, 1)]]),
        # One that has to wait takes no place from those behind it.
        ([failure(1, 1), failure(1, 2), failure(3, 2)],
         [[failure(1, 1), failure(3, 2)], [failure(1, 2)]]),
        # Of one address: counted one after the other.
        ([rejection(1), rejection(1), rejection(2)],
         [[rejection(1), rejection(2)], [rejection(1)]]),
        ([FactsQuery("c", "h", None)] * 3, [[FactsQuery("c", "h", None)] * 3]),
    ],
)  # fmt: skip
def test_those_that_change_different_rows_go_together_in_their_order(
    calls: list[Call], taken: list[list[Call]]
) -> None:
    assert list(batches(calls)) == taken


def test_no_batch_is_longer_than_the_longest_and_none_is_overtaken_by_its_end() -> None:
    calls = [login(n) for n in range(2 * MAX_BATCH + 3)]
    taken = list(batches(calls))
    assert [len(batch) for batch in taken] == [MAX_BATCH, MAX_BATCH, 3]
    assert [call for batch in taken for call in batch] == calls


def some_calls(chance: random.Random, are_logins: bool) -> list[Call]:
    count = chance.randrange(1, 150)
    if are_logins:
        return [login(chance.randrange(9), chance.randrange(9)) for _ in range(count)]
    return [failure(chance.randrange(9), chance.randrange(3)) for _ in range(count)]


def test_every_call_is_taken_once_the_first_one_at_once_and_no_row_twice_in_a_batch() -> None:
    for seed in range(200):
        chance = random.Random(seed)  # noqa: S311 - of calls
        left = waiting(some_calls(chance, seed % 2 == 0))
        all_calls, taken = list(left), []
        while left:
            first = left[0]
            batch = take_batch(left)
            assert batch[0] is first, seed
            rows = [row for one in batch for row in rows_of(one.call)]
            assert len(rows) == len(set(rows)), seed
            assert [all_calls.index(one) for one in left] == sorted(
                all_calls.index(one) for one in left
            )
            taken += batch
        assert sorted(map(id, taken)) == sorted(map(id, all_calls)), seed
