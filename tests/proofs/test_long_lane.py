"""`.ci/run` runs the proofs of the long lane that a change touches, and no others."""

import runpy
import sys
from pathlib import Path

import pytest

from tests.selection import LEFT_OUT
from tests.servers.processes import CHECKOUT, completed
from tests.servers.service import clean_environment

LANE = runpy.run_path(str(CHECKOUT / ".ci" / "long_lane.py"))
ROOMS = ("browser", "live", "operations", "packages", "proofs", "staff", "webhooks")
MODULES = [
    str(path.relative_to(CHECKOUT))
    for room in ROOMS
    for path in (CHECKOUT / "tests" / room).glob("test_*.py")
]


@pytest.mark.parametrize(
    ("changed", "touched", "left_out"),
    [
        ("taxpayers/facts/query.py", {"interleavings", "fuzz", "test_chaos"}, {"test_pages"}),
        ("proofs/interleavings/oracle/claims.py", {"interleavings"}, {"fuzz", "test_chaos"}),
        ("identity/staff/display.py", {"test_hostile_requests", "test_pages"}, {"interleavings"}),
        ("templates/admin/base.html", {"test_pages"}, {"interleavings", "fuzz"}),
        (
            "deploy/gunicorn.conf.py",
            {"test_chaos", "test_production", "test_runbooks"},
            {"test_pages"},
        ),
        ("deploy/prometheus/alerts.yml", {"test_monitoring"}, {"test_chaos", "test_pages"}),
        ("identity/readiness.py", {"test_readiness"}, {"test_pages", "test_production"}),
        ("identity/webhooks/sending/x.py", {"test_guide"}, {"test_chaos", "test_readiness"}),
        ("packages/einvoicing_tokens/src/x.py", {"test_outages", "test_examples"}, {"fuzz"}),
        ("docs/staff.md", set[str](), {"interleavings", "fuzz", "test_pages"}),
    ],
)
def test_a_change_touches_what_imports_or_meets_it(
    changed: str, touched: set[str], left_out: set[str]
) -> None:
    found = {
        Path(proof.name).stem for proof in LANE["proofs"](MODULES) if proof.is_touched([changed])
    }
    assert touched <= found
    assert not left_out & found


def test_what_meets_nothing_that_is_known_is_touched_by_everything() -> None:
    (proof,) = list(LANE["proofs"](["tests/elsewhere/test_new.py"]))[-1:]
    assert proof.is_touched(["README.md"])


@pytest.mark.processes
def test_no_test_begins_after_the_time_is_over_and_it_is_named() -> None:
    one = f"{__file__}::test_what_meets_nothing_that_is_known_is_touched_by_everything"
    command = [sys.executable, "-m", "pytest", "-q", "--seconds=1e-9", one]
    done = completed(command, cwd=CHECKOUT, env=clean_environment() | {"CI": "1"})
    assert (done.returncode, "1 skipped" in done.stdout, LEFT_OUT in done.stdout) == (0, True, True)
