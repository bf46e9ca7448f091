"""`.ci/run` runs the proofs of the long lane that a change touches, and no others."""

import runpy

import pytest

from tests.servers.processes import CHECKOUT

LANE = runpy.run_path(str(CHECKOUT / ".ci" / "long_lane.py"))


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("taxpayers/facts/query.py", {"interleavings", "fuzz", "drill"}),
        ("proofs/interleavings/oracle/limits.py", {"interleavings"}),
        ("identity/staff/display.py", {"fuzz", "drill"}),
        ("deploy/gunicorn.conf.py", {"fuzz", "drill"}),
        ("docs/staff.md", set[str]()),
    ],
)
def test_a_change_touches_what_imports_or_reads_it(changed: str, touched: set[str]) -> None:
    found = {proof.name for proof in LANE["proofs"]() if proof.is_touched([changed])}
    assert {name for name in found if "/" not in name} == touched


def test_tests_that_are_marked_long_are_among_them() -> None:
    names = {proof.name for proof in LANE["proofs"]()}
    assert {"tests/live/test_pgbouncer.py", "tests/real_clients/test_node_clients.py"} <= names
