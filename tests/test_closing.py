"""When a node with a fault closes its door: while others issue tokens, and it has issued none."""

import pytest

from identity.server import readiness
from identity.server.readiness import Closing


@pytest.mark.parametrize(
    ("moments", "window"),
    [
        ([(0, "clock", 7)], None),  # first, others find out whether they have the fault as well
        ([(0, "clock", 7), (5, "clock", 7)], 2),
        ([(0, "clock", 7), (60, "clock", 7)], 10),  # not what was issued long ago
        ([(0, "clock", 7), (5, "clock", 8)], None),  # it issues tokens
        ([(0, "clock", 7), (5, None, 7)], None),
        ([(0, "clock", 7), (5, None, 7), (60, "clock", 7)], None),
        ([(0, "clock", 7), (5, "clock", 8), (9, "clock", 8)], 1),
    ],
)
def test_a_node_closes_if_others_have_issued_tokens_since_its_fault(
    moments: list[tuple[float, str | None, float]],
    window: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows: list[float] = []
    node = Closing(None, (), lambda: None)  # type: ignore[arg-type]

    def is_served_elsewhere(seconds: float) -> bool:
        windows.append(seconds)
        return True

    monkeypatch.setattr(readiness, "is_served_elsewhere", is_served_elsewhere)
    reason = None
    for at, fault, issued in moments:
        monkeypatch.setattr(readiness, "uptime", lambda at=at: at)
        monkeypatch.setattr(readiness, "own_fault", lambda _at, fault=fault: fault)
        monkeypatch.setattr(readiness, "issued_by_this_node", lambda issued=issued: issued)
        windows.clear()
        reason = node._reason_to_close()
    assert (reason, windows) == (("clock", [window]) if window else (None, []))
