"""Which tests run, in which order, and what a run says about those that did not.

The order is random: no test may need what another one left. A run names its seed, and `--seed`
repeats it.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import statements
from tests.servers.processes import NotAvailable

IS_CI = bool(os.environ.get("CI"))
NO_POSTGRES = pytest.StashKey[str]()
LEFT_OUT = "left out: the time given by --seconds is over"
_BEGAN = time.monotonic()

# Tests that use one of these fixtures, also by way of another one, meet other programs.
_PROGRAMS = {"postgres", "service", "node", "chromium"}
# Their tests share servers, which each process would start anew: they run in the same one. Those
# of the browser also bear no other test between them.
_TOGETHER = {
    "tests/browser/": "browser",
    **dict.fromkeys(("tests/live/test_load_balancer", "tests/live/test_proxy_edges"), "proxy"),
    **dict.fromkeys(("tests/live/test_live_service", "tests/certificates/test_behind"), "proxy"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=["sqlite", "postgresql"],
        default="sqlite",
        help="the database of the tests; a real PostgreSQL is started for them (sqlite)",
    )
    parser.addoption(
        "--serve",
        choices=["both", "login"],
        default="both",
        help="login: without the staff pages; tests that need none start sooner (both)",
    )
    parser.addoption(
        "--seed",
        type=int,
        default=random.randrange(1_000_000),  # noqa: S311 - of an order
        help="repeat the random order of an earlier run",
    )

    parser.addoption(
        "--seconds",
        type=float,
        help="begin no test after so many seconds, and say which were left out (no end)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    for item in items:
        if _PROGRAMS & _fixtures(item):
            item.add_marker("processes")
        if item.get_closest_marker("processes") and not item.get_closest_marker("gate"):
            item.add_marker("long")
        if why := config.stash.get(NO_POSTGRES, ""):
            item.add_marker(pytest.mark.skip(reason=why))
    chosen = [item for item in items if _runs_on(config.option.database, item)]
    if config.option.database == "postgresql":
        wanted = statements.needed(config, chosen)
        chosen = [item for item in chosen if item in wanted]
    left_out = set(items) - set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = chosen
    place = {item: _place(item, config.option.seed) for item in items}
    try:
        return (yield)
    finally:
        items.sort(key=lambda item: place[item])  # pytest-django's own order hides what leaks


def _fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def _runs_on(database: str, item: pytest.Item) -> bool:
    """Tests of queries run on both databases, all others once."""
    if database == "sqlite":
        return item.get_closest_marker("postgresql") is None
    # A test that starts its servers chooses their database itself.
    has_marker = item.get_closest_marker("django_db") is not None
    uses_database = has_marker or bool({"db", "transactional_db"} & _fixtures(item))
    return uses_database and item.get_closest_marker("processes") is None


def _unit(nodeid: str) -> str:
    """Its tests run one after the other in one process: a module, or some that share servers."""
    module = nodeid.partition("::")[0]
    shared = (unit for begin, unit in _TOGETHER.items() if module.startswith(begin))
    return next(shared, module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One more than there are cores in the long lane: half of their time its tests wait."""
    return len(os.sched_getaffinity(0)) + 1 if config.option.markexpr == "long" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Units go to the processes, not single tests: those of a module share their servers."""
    return _UnitScheduling(config, log)


class _UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]  # has no types
    def _split_scope(self, nodeid: str) -> str:
        return _unit(nodeid)


def _place(item: pytest.Item, seed: int) -> tuple[int, list[int]]:
    """Where it comes in the random order; the longest units first, so that no worker is idle."""
    unit = _unit(item.nodeid)
    markers = {marker.name for marker in item.iter_markers()}
    hurry = (unit in _TOGETHER.values(), "processes" in markers, "slow" in markers, True)
    # Tests of one module, or of one class, share the fixtures of that scope.
    module = item.nodeid.partition("::")[0]
    names = (unit, module, getattr(item, "cls", None), item.nodeid)
    return hurry.index(True), [crc32(f"{seed} {name}".encode()) for name in names]


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.option.database}; random order: --seed={config.option.seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """A program that a test needs is missing: a developer is told so, CI fails."""
    limit = item.config.option.seconds
    if limit and time.monotonic() > _BEGAN + limit:
        raise pytest.skip.Exception(LEFT_OUT, _use_item_location=True)
    try:
        return (yield)
    except NotAvailable as reason:
        if IS_CI:
            raise
        raise pytest.skip.Exception(str(reason), _use_item_location=True) from None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for reason, count in _skipped(config).items():
        line = f"WARNING: {count} tests did not run. {reason.splitlines()[0]}"
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not IS_CI or exitstatus != 0:
        return
    # A green CI has run every test but those for which it has no time.
    if any(not reason.endswith(LEFT_OUT) for reason in _skipped(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _skipped(config: pytest.Config) -> Counter[str]:
    """How often each reason skipped a test."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(report.longrepr[2] for report in reports)
