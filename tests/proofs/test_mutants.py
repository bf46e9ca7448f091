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
import sys
from limits import is_over
def test_that_has_a_profiler_itself():
    assert not is_over(0)
    sys.setprofile(None)
def test_over():
    assert is_over(4) and not is_over(1)
"""
SURVIVORS = {
    "return used > limit  =>  return used >= limit",
    *(f"FREE = 2  =>  FREE = {other}" for other in (1, 3)),
}


def run(folder: Path, survivors: str = "") -> tuple[int, str]:
    plan = 'killed_percent = 30\n[[rooms]]\nmodules = ["limits.py"]\ntests = ["test_limits.py"]\n'
    (folder / "plan.toml").write_text(f'{plan}databases = [""]\n[survivors]\n{survivors}')
    command = [sys.executable, "-m", "proofs.mutants", f"--plan={folder}/plan.toml"]
    done = completed([*command, f"--root={folder}"], cwd=CHECKOUT)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.processes
@pytest.mark.long
def test_a_survivor_fails_the_run_until_it_is_explained_or_killed(tmp_path: Path) -> None:
    (tmp_path / "limits.py").write_text(RULES)
    (tmp_path / "test_limits.py").write_text(TESTS)
    status, output = run(tmp_path)
    found = {line.strip(' "') for line in output.splitlines() if "  =>  " in line}
    assert (status, found) == (1, SURVIVORS), output
    explained = f'"limits.py" = {{ "{min(SURVIVORS)}" = "for this test" }}'
    status, output = run(tmp_path, explained)
    assert (status, "1 explained, 2 not" in output) == (1, True), output
    with (tmp_path / "test_limits.py").open("a") as tests:
        tests.write("def test_the_limit_is_allowed(): assert is_over(3) and not is_over(2)\n")
    status, output = run(tmp_path)
    assert (status, "100.0 % killed" in output) == (0, True), output


def test_the_plan_names_tests_that_exist() -> None:
    plan = tomllib.loads((CHECKOUT / "proofs/mutants/plan.toml").read_text(encoding="utf-8"))
    for room in plan["rooms"]:
        assert all((CHECKOUT / test).exists() for test in room["tests"]), room["tests"]
        assert all(any(CHECKOUT.glob(pattern)) for pattern in room["modules"]), room["modules"]
