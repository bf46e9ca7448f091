"""A test of processes that fails at first: CI tries it again and says so, nobody else does."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

CHECKOUT = Path(__file__).resolve().parents[2]

FAILS_AT_FIRST = """
import pytest
from pathlib import Path

@pytest.mark.processes
@pytest.mark.parametrize("number", range({count}))
def test_that_comes_and_goes(number):
    tried = Path(__file__).with_name(f"tried-{{number}}")
    was_tried = tried.exists()
    tried.touch()
    assert was_tried, "the port was taken"
"""


def run(folder: Path, count: int = 1) -> tuple[int, str]:
    (folder / "test_sample.py").write_text(FAILS_AT_FIRST.format(count=count))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  processes\n")
    command = ["-m", "pytest", "-p", "tests.selection", "-p", "no:django", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *command, "--rootdir", str(folder), str(folder)],
        env={"PYTHONPATH": str(CHECKOUT), "CI": "1"},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


def test_ci_tries_a_test_of_processes_again_and_shows_why(tmp_path: Path) -> None:
    status, shown = run(tmp_path)
    assert status == 0
    assert "test_that_comes_and_goes[0] failed at first" in shown
    assert "the port was taken" in shown


def test_more_than_two_that_fail_at_first_fail_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, count=3)[0] == 1
