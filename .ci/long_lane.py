"""The part of the long lane that a change touches, in a short form: by imports or files read.

`.ci/run` calls it after the gate. It compares with CI_BASE, else with the parent of HEAD; without
either, every proof is touched. `make long` runs all of them at full length.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the tests marked `long` below these names meet without importing it: served, read, run.
_LOGINS = ("tokens/", "taxpayers/facts/", "taxpayers/rules.py", "identity/server/")
_PAGES = ("identity/staff/", "identity/urls.py", "templates/", "locale/")
_MET = {
    "tests/browser/": (*_PAGES, "identity/developers/"),
    "tests/commands/": ("identity/demo", "identity/settings.py"),
    "tests/developers/": ("identity/developers/", "tokens/", "identity/sandbox/"),
    "tests/live/test_pgbouncer.py": ("tokens/store/", "identity/databases.py", "deploy/pgbouncer"),
    "tests/live/test_proxy_edges.py": ("deploy/nginx.conf", "identity/server/"),
    "tests/live/test_readiness.py": ("identity/readiness", "identity/server/", "tokens/store/"),
    "tests/operations/test_pgbackrest.py": ("deploy/pgbackrest",),
    "tests/operations/": ("deploy/", "taxpayers/migrations/", "tokens/migrations/"),
    "tests/proofs/test_chaos.py": (*_LOGINS, "deploy/gunicorn.conf.py", "deploy/nginx.conf"),
    "tests/proofs/test_mutants.py": ("proofs/mutants/",),
    "tests/real_clients/": ("tokens/", "identity/server/"),
    "tests/registry/": ("taxpayers/files/", "taxpayers/services/"),
    "tests/staff/": _PAGES,
}


@dataclass(frozen=True)
class Proof:
    """`modules` are followed by their imports; `paths` begin the names of other files it reads."""

    name: str
    command: tuple[str, ...] = ()  # none: a module of tests
    modules: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def is_touched(self, changed: Iterable[str]) -> bool:
        files = {file for module in self.modules for file in imported(module)}
        return any(name in files or name.startswith(self.paths) for name in changed)


def proofs() -> Iterator[Proof]:
    """Those that have a short form, and each module with tests that are marked `long`."""
    run, of_all = (sys.executable, "-m"), ("identity/", *_LOGINS)
    steps, inputs = ("--steps", "20000"), ("--inputs", "10000")
    yield Proof(
        "interleavings", (*run, "proofs.interleavings", *steps), ("proofs.interleavings.__main__",)
    )
    yield Proof("fuzz", (*run, "proofs.fuzz", *inputs), ("proofs.fuzz.__main__",), of_all)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "mark.long" in path.read_text(encoding="utf-8"):
            name = str(path.relative_to(ROOT))
            met = next((_MET[begin] for begin in _MET if name.startswith(begin)), ())
            yield Proof(name, modules=(_module(path),), paths=met)


NEVER = ("the drill with Patroni", "mutants", "a million steps and inputs", "the image")


@cache
def imported(module: str) -> frozenset[str]:
    """The files of the checkout that a module imports, also by way of others, and its own."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        path = _file(waiting.pop())
        if path is None or (name := str(path.relative_to(ROOT))) in found:
            continue
        found.add(name)
        waiting += _imports(path)
    return frozenset(found)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def changed_files() -> list[str] | None:
    """What HEAD changes, by name; None if there is nothing to compare it with."""
    for base in filter(None, (os.environ.get("CI_BASE"), "HEAD^")):
        done = subprocess.run(  # noqa: S603 - a fixed command
            ["git", "diff", "--name-only", base, "HEAD"],  # noqa: S607 - the git of this machine
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout.splitlines()
    return None


def _fails(command: tuple[str, ...]) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode != 0  # noqa: S603 - ours


def main() -> int:
    """Runs what is touched; 1 if one of them fails."""
    changed = changed_files()
    touched, tests = [], []
    for proof in proofs():
        if changed is not None and not proof.is_touched(changed):
            sys.stdout.write(f"-- left out, not touched: {proof.name}\n")
        elif proof.command:
            touched.append(proof)
        else:
            tests.append(proof.name)
    if tests:
        of_pytest = ("-q", "-n", "2", "--dist", "loadscope", "-m", "long", *tests)
        touched.append(Proof("long tests", (sys.executable, "-m", "pytest", *of_pytest)))
    failed = 0
    for proof in touched:
        sys.stdout.write(f"-- {proof.name}: {' '.join(proof.command[1:])}\n")
        sys.stdout.flush()
        failed |= _fails(proof.command)
    sys.stdout.write(f"-- left out, `make long` and its commands only: {', '.join(NEVER)}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
