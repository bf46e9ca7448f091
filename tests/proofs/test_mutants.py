"""The mutation run itself: a fault that no test notices fails it, until somebody explains it."""

import ast
import mmap
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from proofs.mutants.forks import run_in_fork
from proofs.mutants.functions import changes_only_functions
from proofs.mutants.mutants import OPERATORS, mutants_of
from proofs.mutants.plan import read_plan
from tests.servers.processes import CHECKOUT

PLAN = read_plan(CHECKOUT / "proofs/mutants/plan.toml", CHECKOUT)


# --- The plan -----------------------------------------------------------------------------------

# What decides, counts, reads a request, records it, signs and verifies, and what says how a client
# may log in: each new module too.
CORE = (
    *("taxpayers/rules.py", "taxpayers/credentials.py", "taxpayers/identifiers.py"),
    *("taxpayers/redaction.py", "taxpayers/facts", "tokens/rate_limits", "tokens/client_auth"),
    *("tokens/access_tokens", "tokens/keys", "tokens/resource_server", "tokens/dpop"),
    *("taxpayers/certificates", "taxpayers/client_keys.py", "taxpayers/services/login_method"),
    *(f"tokens/request/{name}.py" for name in ("form", "token_request", "on_behalf_of", "proxies")),
    *(f"tokens/operations/{name}.py" for name in ("recording", "login", "steps", "failures")),
    *(f"tokens/operations/{name}.py" for name in ("denials", "stages")),
    *(f"tokens/operations/{name}.py" for name in ("introspection", "revocation")),
    *("tokens/answers/accept.py", "tokens/answers/challenge.py", "tokens/form_encoding.py"),
    *(f"tokens/store/{name}.py" for name in ("postgresql", "postgresql_buckets", "token_query")),
    *("tokens/store/used_once.py", "tokens/status_lists/reserved.py"),
)


# It decides no login: pages call by it what they read.
FOR_PAGES = {"taxpayers/facts/credential_kind.py"}


def modules_of(part: str) -> list[str]:
    path = CHECKOUT / part
    files = [path] if path.suffix else path.rglob("*.py")
    return [str(file.relative_to(CHECKOUT)) for file in files if file.name != "__init__.py"]


def test_every_module_of_the_core_is_mutated() -> None:
    modules = {module for part in CORE for module in modules_of(part)}
    assert modules - FOR_PAGES == PLAN.modules.keys()
    assert modules >= FOR_PAGES


@cache
def explained_of(module: str) -> Counter[str]:
    """How many of its mutants have the name of a survivor that is explained."""
    names = PLAN.survivors[module]
    found = (mutant.difference for mutant in mutants_of(module, PLAN.source(module)))
    return Counter(difference for difference in found if difference in names)


def test_every_test_of_the_plan_exists() -> None:
    for arguments in chain.from_iterable(PLAN.modules.values()):
        chosen = [argument for argument in arguments if argument.startswith("tests/")]
        assert chosen
        assert all((CHECKOUT / path).exists() for path in chosen), chosen


@pytest.mark.slow
def test_an_explained_survivor_is_still_a_mutant_of_its_module() -> None:
    for module, reasons in PLAN.survivors.items():
        assert reasons.keys() == explained_of(module).keys()
        assert all(reasons.values()), "each has its reason"


# --- The mutants --------------------------------------------------------------------------------

MODULE = '''"""A module."""

from functools import cache

FREE: int | None = 10


@cache
def pause(failures: int, busy: bool) -> int:
    """How long."""
    if failures <= FREE and not busy:
        return 0
    stored.append(failures)
    self.last = failures
    return [2**n for n in range(9) if n in known][0]
'''
MUTATED = {
    "FREE: int | None = 10  =>  FREE: int | None = 11",
    "FREE: int | None = 10  =>  FREE: int | None = 9",
    "@cache  =>  ",
    "if failures <= FREE and not busy:  =>  if failures < FREE and not busy:",
    "if failures <= FREE and not busy:  =>  if failures > FREE and not busy:",
    "if failures <= FREE and not busy:  =>  if not failures <= FREE and not busy:",
    "if failures <= FREE and not busy:  =>  if failures <= FREE or not busy:",
    "if failures <= FREE and not busy:  =>  if failures <= FREE and  busy:",
    "return 0  =>  return 1",
    "return 0  =>  return -1",
    "return 0  =>  pass",
    "stored.append(failures)  =>  pass",
    "self.last = failures  =>  pass",
}
LAST = "return [2**n for n in range(9) if n in known][0]  =>  "
MUTATED |= {
    f"{LAST}{after}"
    for after in (
        "return [3**n for n in range(9) if n in known][0]",
        "return [1**n for n in range(9) if n in known][0]",
        "return [2*n for n in range(9) if n in known][0]",
        "return [2**n for n in range(10) if n in known][0]",
        "return [2**n for n in range(8) if n in known][0]",
        "return [2**n for n in range(9) if n not in known][0]",
        "return [2**n for n in range(9) if not (n in known)][0]",
        "return [2**n for n in range(9) if n in known][1]",
        "return [2**n for n in range(9) if n in known][-1]",
        "pass",
    )
}


def test_a_module_has_these_mutants_each_once_and_none_in_its_annotations() -> None:
    found = [without_blanks(mutant.difference) for mutant in mutants_of("a.py", MODULE)]
    assert sorted(found) == sorted(map(without_blanks, MUTATED))


def without_blanks(text: str) -> str:
    return "".join(text.split())


def test_an_end_without_a_value_may_be_left_out() -> None:
    early = "def f(x):\n    if x:\n        return None\n    return None\n"
    found = [mutant.source for mutant in mutants_of("a.py", early)]
    assert found == [early.replace("if x", "if not x"), early.replace("return None", "pass", 1)]


def test_every_mutant_is_a_program() -> None:
    for mutant in mutants_of("a.py", MODULE):
        ast.parse(mutant.source)


def test_cosmic_ray_knows_every_operator() -> None:
    from cosmic_ray.plugins import operator_names

    assert set(OPERATORS) <= set(operator_names())


@pytest.mark.parametrize(
    ("after", "only_functions"),
    [
        ("LIMIT = 1\n@once\ndef f(a=2):\n    return LIMIT < a\n", True),
        ("LIMIT = 2\n@once\ndef f(a=2):\n    return LIMIT\n", False),
        ("LIMIT = 1\n@once\ndef f(a=3):\n    return LIMIT\n", False),
        ("LIMIT = 1\ndef f(a=2):\n    return LIMIT\n", False),
    ],
)
def test_a_mutant_of_anything_but_a_function_is_told_apart(
    after: str, only_functions: bool
) -> None:
    before = "LIMIT = 1\n@once\ndef f(a=2):\n    return LIMIT\n"
    assert changes_only_functions(before, after) is only_functions


# --- A run --------------------------------------------------------------------------------------

RULES = "def is_over(used, limit):\n    return used > limit\n"
TESTS = "def test_over(): assert is_over(3, 2) and not is_over(1, 2)\n"
BOUNDARY = "def test_the_limit_is_allowed(): assert not is_over(2, 2)\n"
SURVIVOR = "return used > limit  =>  return used >= limit"


def run(folder: Path, *tests: str, survivors: str = "", rules: str = RULES) -> tuple[int, str]:
    """Exit status and output, for a module of one rule that has a run for each of `tests`."""
    (folder / "limits.py").write_text(rules)
    lines = ["killed_percent = 50"]
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(f"from limits import is_over\n{text}")
        lines += ["[[runs]]", 'arguments = ["-q", "-p", "no:cacheprovider"]']
        lines += ["[runs.modules]", f'"limits.py" = ["test_{number}.py"]']
    plan = folder / "plan.toml"
    plan.write_text("\n".join([*lines, "[survivors]", survivors]))
    command = [sys.executable, "-m", "proofs.mutants", f"--plan={plan}", f"--root={folder}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.processes
def test_a_survivor_that_nobody_has_explained_fails_the_run(tmp_path: Path) -> None:
    status, output = run(tmp_path, TESTS)
    assert (status, SURVIVOR in output) == (1, True), output
    explained = f'"limits.py" = {{ "{SURVIVOR}" = "for this test" }}'
    status, output = run(tmp_path, TESTS, survivors=explained)
    assert (status, "1 explained, 0 not" in output) == (0, True), output
    # A better test kills it, and what was killed or explained is not tried again.
    status, output = run(tmp_path, TESTS + BOUNDARY)
    assert (status, "100.0 % killed" in output) == (0, True), output
    results = (tmp_path / "var/mutants/results.jsonl").read_text().splitlines()
    tried = [line for line in results if SURVIVOR in line]
    assert (len(tried), len(results)) == (2, len(set(results)))


@pytest.mark.processes
def test_what_survives_one_run_meets_the_next_one(tmp_path: Path) -> None:
    status, output = run(tmp_path, TESTS, BOUNDARY)
    assert (status, "100.0 % killed" in output) == (0, True), output


@pytest.mark.processes
def test_what_is_worked_out_at_an_import_kills_too(tmp_path: Path) -> None:
    rules = "FREE = 2\ndef is_over(used, limit=FREE):\n    return used > limit\n"
    at_import = "OVER = is_over(2)\ndef test_free(): assert is_over(3) and not OVER\n"
    status, output = run(tmp_path, at_import, rules=rules)
    assert (status, "100.0 % killed" in output) == (0, True), output


IN_A_FORK = """
import os
def test_over():
    child = os.fork()
    if not child:
        os._exit(is_over(2, 2) or not is_over(3, 2))
    assert os.waitpid(child, 0)[1] == 0
"""
BY_A_FIXTURE = """
import pytest
from limits import is_under
@pytest.fixture(scope="session")
def found():
    return is_under(2, 2), is_under(1, 2)
def test_under(found):
    assert found == (False, True)
"""


REMEMBERED = """
from limits import is_full
def test_first():
    is_full(2, 2)
def test_full():
    assert is_full(2, 2)
"""


@pytest.mark.processes
def test_what_a_fork_calls_or_a_fixture_of_the_session_or_a_cache_hides_is_tried_too(
    tmp_path: Path,
) -> None:
    under = RULES.replace("is_over", "is_under").replace(">", "<")
    full = RULES.replace("is_over", "is_full").replace(">", "==")
    rules = f"from functools import cache\n{RULES}{under}@cache\n{full}"
    status, output = run(
        tmp_path,
        IN_A_FORK + BY_A_FIXTURE + REMEMBERED,
        rules=rules,
        survivors='"limits.py" = { "@cache  =>  " = "it only saves time" }',
    )
    assert (status, "1 explained, 0 not" in output) == (0, True), output


@pytest.mark.processes
def test_tests_that_fail_without_a_mutant_kill_nothing(tmp_path: Path) -> None:
    status, output = run(tmp_path, TESTS + "def test_wrong(): assert not is_over(3, 2)\n")
    assert (status, "do not pass without a mutant" in output) == (1, True), output


@pytest.mark.processes
def test_a_mutant_that_never_ends_is_killed(tmp_path: Path) -> None:
    endless = "def test_ends():\n    while not is_over(3, 2): pass\n"
    status, output = run(tmp_path, endless + BOUNDARY)
    assert (status, "100.0 % killed" in output) == (0, True), output


def test_a_run_gets_so_much_memory_and_as_many_mapped_files_as_it_likes(tmp_path: Path) -> None:
    size = 5 << 30

    def map_a_file() -> int:
        with (tmp_path / "facts").open("w+b") as file:
            file.truncate(size)  # takes no room
            mmap.mmap(file.fileno(), size).close()
        return 0

    def take_memory() -> int:
        with pytest.raises(OSError, match="Cannot allocate memory"):
            mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return 0

    assert run_in_fork(map_a_file).status == 0
    assert run_in_fork(take_memory).status == 0
