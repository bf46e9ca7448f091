"""`.ci/run` runs the proofs of the long lane that a change touches, and no others."""

import runpy

import pytest

from tests.servers.processes import CHECKOUT

LANE = runpy.run_path(str(CHECKOUT / ".ci" / "long_lane.py"))


@pytest.mark.parametrize(
    ("changed", "touched", "left_out"),
    [
        ("taxpayers/facts/query.py", {"interleavings", "fuzz", "test_chaos.py"}, {"test_pages.py"}),
        ("proofs/interleavings/oracle/limits.py", {"interleavings"}, {"fuzz", "test_chaos.py"}),
        (
            "identity/staff/display.py",
            {"test_hostile_requests.py", "test_pages.py"},
            {"interleavings"},
        ),
        ("templates/admin/base.html", {"test_pages.py"}, {"interleavings", "fuzz"}),
        ("deploy/gunicorn.conf.py", {"test_chaos.py", "test_upgrade.py"}, {"test_pages.py"}),
        ("docs/staff.md", set[str](), {"interleavings", "fuzz", "test_pages.py"}),
    ],
)
def test_a_change_touches_what_imports_or_meets_it(
    changed: str, touched: set[str], left_out: set[str]
) -> None:
    found = {
        proof.name.rpartition("/")[2] for proof in LANE["proofs"]() if proof.is_touched([changed])
    }
    assert touched <= found
    assert not left_out & found


def test_every_module_with_tests_marked_long_is_touched_by_something() -> None:
    modules = [proof for proof in LANE["proofs"]() if not proof.command]
    assert len(modules) > 10
    for proof in modules:
        files = {file for module in proof.modules for file in LANE["imported"](module)}
        ours = ("identity/", "tokens/", "taxpayers/", "proofs/", "bench/")
        assert proof.paths or any(name.startswith(ours) for name in files), proof.name
