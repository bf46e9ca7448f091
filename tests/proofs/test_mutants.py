"""The mutation run: a fault that no test notices fails it, until it is explained."""

import sys
import tomllib
from pathlib import Path

import pytest

from tests.servers.processes import CHECKOUT, completed

RULES = """
FREE = 2
def is_over(used, limit=FREE):
    return used > limit
"""
TESTS = """
import subprocess, sys
import pytest
from limits import is_over
def test_that_has_a_tracer_itself():
    assert not is_over(0)
    sys.settrace(None)
def test_over():
    assert is_over(4) and not is_over(1)
@pytest.mark.processes
def test_program():
    assert subprocess.call([sys.executable, "-c", "import limits; exit(limits.FREE)"]) == 2
"""
SURVIVOR = "return used > limit  =>  return used >= limit"


def run(folder: Path, survivors: str = "") -> tuple[int, str]:
    room = '[[rooms]]\nmodules = ["limits.py"]\ntests = ["test_limits.py"]\nprograms = true\n'
    plan = f'killed_percent.core = 30\n{room}databases = [""]\n[survivors]\n{survivors}'
    (folder / "plan.toml").write_text(plan)
    command = [sys.executable, "-m", "proofs.mutants", f"--plan={folder}/plan.toml"]
    done = completed([*command, f"--root={folder}"], cwd=CHECKOUT)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.processes
@pytest.mark.long
def test_a_survivor_fails_the_run_until_it_is_explained_or_killed(tmp_path: Path) -> None:
    (tmp_path / "limits.py").write_text(RULES)
    (tmp_path / "test_limits.py").write_text(TESTS)
    status, output = run(tmp_path)
    found = [line.strip(' "') for line in output.splitlines() if "  =>  " in line]
    assert (status, found) == (1, [SURVIVOR]), output
    status, output = run(tmp_path, f'"limits.py" = {{ "{SURVIVOR}" = "for this test" }}')
    assert (status, "survived: 0, and 1 that change nothing" in output) == (0, True), output
    with (tmp_path / "test_limits.py").open("a") as tests:
        tests.write("def test_the_limit_is_allowed(): assert is_over(3) and not is_over(2)\n")
    status, output = run(tmp_path)
    assert (status, "100.0 % of 5 mutants killed" in output) == (0, True), output


def test_the_plan_names_tests_that_exist() -> None:
    plan = tomllib.loads((CHECKOUT / "proofs/mutants/plan.toml").read_text(encoding="utf-8"))
    for room in plan["rooms"]:
        assert all((CHECKOUT / test).exists() for test in room["tests"]), room["tests"]
        assert all(any(CHECKOUT.glob(pattern)) for pattern in room["modules"]), room["modules"]
