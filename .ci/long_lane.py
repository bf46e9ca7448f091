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
_OURS = ("identity/", "tokens/", "taxpayers/", "proofs/", "bench/", "packages/", "clientcheck/")
SECONDS = 75  # of long tests; then the others of them are left out
# What long tests below these names meet without importing it: served, read, run. The first counts.
_LOGINS = ("tokens/", "taxpayers/facts/", "taxpayers/rules.py", "identity/server/")
_PAGES = ("identity/staff/", "identity/urls.py", "templates/", "locale/")
_DEPLOY = ("deploy/", "taxpayers/migrations/", "tokens/migrations/")
_SETTINGS = ("identity/configuration/", "identity/settings.py", "identity/deployment.py")
_MET = {
    "tests/browser/test_confirm": ("templates/confirm/", "identity/confirm/"),
    "tests/browser/": (*_PAGES, "identity/developers/"),
    "tests/clientcheck/": ("clientcheck/",),
    "tests/commands/": ("identity/demo", "identity/refused_", *_SETTINGS),
    "tests/developers/": ("identity/developers/", "identity/sandbox/"),
    "tests/dpop/": ("tokens/dpop/", "tokens/store/"),
    "tests/endpoint/": ("tokens/metrics", "identity/server/"),
    "tests/live/test_load_balancer": ("deploy/nginx.conf",),
    "tests/live/test_pgbouncer": ("tokens/store/", "identity/databases.py", "deploy/pgbouncer"),
    "tests/live/test_private_files": ("identity/private_files", *_SETTINGS),
    "tests/live/test_proxy_edges": ("deploy/nginx.conf", "identity/server/"),
    "tests/live/test_readiness": ("identity/readiness", "identity/server/", "tokens/store/"),
    "tests/live/test_start_and_stop": ("identity/server/", "deploy/gunicorn.conf.py"),
    "tests/live/": ("tokens/keys/", "tokens/status_lists/", "identity/server/"),
    "tests/operations/test_log_lines": ("identity/logs",),
    "tests/operations/test_monitoring": ("deploy/prometheus/", "deploy/grafana/"),
    "tests/operations/test_pgbackrest": ("deploy/pgbackrest", "docs/backup.md"),
    "tests/operations/test_settings": _SETTINGS,
    "tests/operations/": (*_DEPLOY, "docs/operations.md", "docs/backup.md"),
    "tests/packages/": ("packages/",),
    "tests/proofs/test_chaos": (*_LOGINS, "deploy/gunicorn.conf.py", "deploy/nginx.conf"),
    "tests/proofs/test_container": ("deploy/container/", "deploy/helm/", "deploy/proxy"),
    "tests/proofs/test_databases": ("deploy/container/",),
    "tests/proofs/test_mutants": ("proofs/mutants/",),
    "tests/proofs/test_outages": ("packages/", "tokens/status_lists/"),
    "tests/proofs/test_proxy": ("deploy/",),
    "tests/real_clients/test_generated": ("identity/developers/openapi/", "identity/api/"),
    "tests/real_clients/": ("tokens/client_auth/", "tokens/operations/", "tokens/dpop/"),
    "tests/registry/": ("taxpayers/files/", "taxpayers/services/"),
    "tests/sandbox/": ("identity/sandbox/", "taxpayers/sandbox/"),
    "tests/staff/": _PAGES,
    "tests/test_connection": ("identity/",),
    "tests/test_checks": (*_SETTINGS, "tokens/checks.py", "identity/staff/checks.py"),
    "tests/traces/": ("identity/traces/",),
    "tests/webhooks/": ("identity/webhooks/",),
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


def proofs(modules: Iterable[str]) -> Iterator[Proof]:
    """Those that have a short form, and these modules, which have long tests."""
    run, of_all = (sys.executable, "-m"), ("identity/", *_LOGINS)
    steps, inputs = ("--steps", "10000"), ("--inputs", "5000")
    yield Proof(
        "interleavings", (*run, "proofs.interleavings", *steps), ("proofs.interleavings.__main__",)
    )
    yield Proof("fuzz", (*run, "proofs.fuzz", *inputs), ("proofs.fuzz.__main__",), of_all)
    for name in modules:
        module = _module(ROOT / name)
        knows = any(file.startswith(_OURS) for file in imported(module))
        met = (_MET[begin] for begin in _MET if name.startswith(begin))
        # Of which nothing is known is touched by everything.
        yield Proof(name, modules=(module,), paths=next(met, () if knows else ("",)))


def modules_with_long_tests() -> list[str]:
    """As pytest finds them: what starts programs is long without a word in its file."""
    collect = (sys.executable, "-m", "pytest", "-m", "long", "--collect-only", "-q")
    done = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return sorted({line.split("::")[0] for line in done.stdout.splitlines() if "::" in line})


WHOLE_DRILL = "tests/proofs/test_chaos.py::test_no_other_fault_breaks_a_promise"
NEVER = (
    "the whole drill",
    "the drill with Patroni",
    "mutants",
    "a million steps and inputs",
    "the image",
)


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


@cache
def _imports(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


@cache
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
    for proof in proofs(modules_with_long_tests()):
        if changed is not None and not proof.is_touched(changed):
            sys.stdout.write(f"-- left out, not touched: {proof.name}\n")
        elif proof.command:
            touched.append(proof)
        else:
            tests.append(proof.name)
    if tests:
        how = ("-q", "-n", "2", "--dist", "loadscope", "-m", "long", f"--seconds={SECONDS}")
        of_pytest = (*how, f"--deselect={WHOLE_DRILL}", *tests)
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
