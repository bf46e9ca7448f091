"""A nonce is a moment that only this service can write: stored nowhere, the same on every node."""

from datetime import UTC, datetime, timedelta

import pytest

from tokens.dpop.nonce import WINDOW, Nonces

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)  # where a window begins
TICK = timedelta(microseconds=1)
NODE, OTHER_NODE, OTHER_SERVICE = Nonces(b"k"), Nonces(b"k"), Nonces(b"another")


@pytest.mark.parametrize(
    ("later", "is_accepted"),
    [
        (timedelta(0), True),
        (WINDOW - TICK, True),
        (WINDOW, True),
        (2 * WINDOW - TICK, True),
        (2 * WINDOW, False),
        (24 * WINDOW, False),
        (-TICK, True),  # another node's idea of the time is a little behind
        (-WINDOW, True),
        (-WINDOW - TICK, False),
    ],
)
def test_it_is_accepted_for_one_to_two_windows(later: timedelta, is_accepted: bool) -> None:
    assert OTHER_NODE.is_accepted(NODE.current(AT), AT + later) is is_accepted


def test_within_a_window_it_is_the_same_and_then_another_one() -> None:
    assert NODE.current(AT) == NODE.current(AT + WINDOW - TICK) != NODE.current(AT + WINDOW)


def test_without_the_key_none_can_be_made() -> None:
    assert not NODE.is_accepted(OTHER_SERVICE.current(AT), AT)


@pytest.mark.parametrize("nonce", ["", "x", "é", "\ud800", "A" * 24, "A" * 4000])
def test_any_other_text_is_not_accepted(nonce: str) -> None:
    assert not NODE.is_accepted(nonce, AT)
