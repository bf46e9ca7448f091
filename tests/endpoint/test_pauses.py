"""`Retry-After` of a 503: spread, and longer the more clients come (contract 1)."""

import heapq

from tokens.answers.pauses import Pauses


def test_a_few_clients_come_back_soon_and_not_together() -> None:
    pauses = Pauses(0.0)
    seen = [pauses.next(second) for second in range(300)]
    assert set(seen) == set(range(5, 16))


def test_a_crowd_is_spread_until_about_200_a_second_come_back() -> None:
    """100,000 clients and one process that has no token for any of them for a while."""
    pauses = Pauses(0.0)
    waiting = [number / 5_000 for number in range(100_000)]  # they come within 20 seconds
    came: dict[int, int] = {}
    while waiting[0] < 1_200:
        now = heapq.heappop(waiting)
        came[int(now) // 60] = came.get(int(now) // 60, 0) + 1
        heapq.heappush(waiting, now + pauses.next(now))
    assert max(came[minute] for minute in range(3, 20)) < 60 * 1_000
    assert pauses.next(1_200.0) <= 305
    last = [pauses.next(second) for second in range(1_300, 1_400, 2)][-1]
    assert last <= 15, "as soon as few come they wait no longer than before"
