"""What tests ask of the database: on SQLite it is noted, and PostgreSQL then gets each question.

`--statements=FILE`: a run on SQLite writes into it what each test costs this process, and which
statements it executes, with what kind of values, and which of them failed. A run on PostgreSQL
reads it, and leaves a test out if enough others execute each of its statements; of one that commits
its like also commit. Those run that cost least; between like ones the seed decides. These run on
both databases in any case: tests whose subject is the database, or without a note.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

_LAST = Path(__file__).parents[1] / "var" / "statements.txt"
# Of the tests that execute a statement, so many do so on PostgreSQL.
ENOUGH = 1
# Their subject is what a database does with our statements, of which each engine has its own.
ABOUT_DATABASES = (
    *("tests/facts/", "tests/proofs/", "tests/lanes/"),
    *(f"tests/registry/test_{name}" for name in ("epochs", "import_registry")),
    *(f"tests/registry/test_services_{name}" for name in ("at_once", "registry")),
    *("tests/search/test_name_lookups.py", "tests/test_health.py"),
    *(f"tests/status_lists/test_{name}" for name in ("offline_blocks", "reserved", "status_lists")),
    *(f"tests/tokens/test_{name}.py" for name in ("batches", "prune_logins", "rate_limits")),
    "tests/introspection/test_at_once.py",
    *("tests/client_auth/test_used_once.py", "tests/endpoint/test_recording.py"),
    "tests/management_api/test_idempotency.py",
)
_LONG_TEXT, _INTEGER, _BIG_INTEGER = 255, 2**31, 2**63
_MOST_ROWS = 1000  # of many like them

Values = Iterable[Any] | dict[str, Any] | None
Execute = Callable[[Any, str, Any], Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--statements",
        metavar="FILE",
        type=lambda name: Path(name).absolute(),
        help="on SQLite: note what each test executes; on PostgreSQL: run each noted statement",
    )
    parser.addoption(
        "--cheaper-than",
        metavar="SECONDS",
        type=float,
        help=f"leave out tests that cost more CPU time in the last `make test` ({_LAST.name})",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.statements and config.option.database == "sqlite":
        config.pluginmanager.register(_Notes(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    limit = config.option.cheaper_than
    if limit is not None:
        dear = {name for name, (cpu, _) in _read(_LAST).items() if cpu > limit}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in dear])
        items[:] = [item for item in items if item.nodeid not in dear]


def needed(config: pytest.Config, items: list[pytest.Item]) -> set[pytest.Item]:
    """Those of the tests that PostgreSQL needs to execute every statement often enough."""
    file, seed = config.option.statements, config.option.seed
    if not file:
        return set(items)
    read = _read(file)
    noted = {name: statements for name, (_, statements) in read.items()}
    for name in {item.nodeid for item in items if _commits(item)} & noted.keys():
        noted[name] = [*noted[name], *(f"{statement} committed" for statement in noted[name])]
    certain = {i for i in items if i.nodeid not in noted or is_about_databases(i)}
    executed = Counter(s for item in certain for s in noted.get(item.nodeid, ()))
    chosen: list[pytest.Item] = []

    def place(item: pytest.Item) -> tuple[float, int]:
        """The cheapest first; of those that cost the same in another order each time."""
        return round(read[item.nodeid][0], 1), crc32(f"{seed} {item.nodeid}".encode())

    for item in sorted((i for i in items if i not in certain), key=place):
        if any(executed[s] < ENOUGH for s in noted[item.nodeid]):
            chosen.append(item)
            executed.update(noted[item.nodeid])
    for item in chosen[::-1]:  # the dearest first: others may execute all of it
        if all(executed[s] > ENOUGH for s in noted[item.nodeid]):
            chosen.remove(item)
            executed.subtract(noted[item.nodeid])
    return certain.union(chosen)


def is_about_databases(item: pytest.Item) -> bool:
    """Whether it runs on both databases whatever others execute."""
    is_named = item.get_closest_marker("postgresql") is not None
    return is_named or item.nodeid.startswith(ABOUT_DATABASES)


def _commits(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("django_db")
    uses_fixture = "transactional_db" in getattr(item, "fixturenames", ())
    return uses_fixture or bool(marker and marker.kwargs.get("transaction"))


def _read(file: Path) -> dict[str, tuple[float, list[str]]]:
    """Of each test the seconds of CPU time, and its statements."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = (row for line in lines if len(row := line.rsplit("\t", 2)) == 3)  # of no older form
    return {name: (float(cpu), found.split()) for name, cpu, found in rows}


class _Notes:
    def __init__(self, config: pytest.Config) -> None:
        self._file = config.option.statements
        self._of_tests: dict[str, set[str]] = {}
        self._cpu: dict[str, float] = {}
        self._present: set[str] = set()
        if not hasattr(config, "workerinput"):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text("")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        from django.db.backends.utils import CursorWrapper  # not before its settings are read

        for name in ("execute", "executemany"):
            setattr(CursorWrapper, name, self._noting(getattr(CursorWrapper, name)))

    def _noting(self, execute: Execute) -> Execute:
        def execute_and_note(cursor: Any, sql: str, values: Any = None) -> Any:
            statement = f"{shape(sql)} {kinds(values)}"
            self._present.add(statement)
            try:
                return execute(cursor, sql, values)
            except Exception as fault:
                self._present.add(f"{statement} {type(fault).__name__}")
                raise

        return execute_and_note

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._present = self._of_tests[item.nodeid] = set()
        began = time.process_time()
        result = yield
        self._cpu[item.nodeid] = time.process_time() - began
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            for name, statements in self._of_tests.items():
                hashed = sorted(f"{crc32(text.encode()):x}" for text in statements)
                file.write(f"{name}\t{self._cpu[name]:.2f}\t{' '.join(hashed)}\n")


@lru_cache(maxsize=20_000)
def shape(sql: str) -> str:
    """The statement without what changes from call to call: how many values, names, numbers."""
    text = re.sub(r'"?s\d+_x\d+"?', "savepoint", str(sql))
    text = re.sub(r"'(?:[^']|'')*'|\b\d+\b", "?", text)
    return re.sub(r"(\(?(?:%s|\?)(?:::\w+)?\)?)(?:, *\(?(?:%s|\?)(?:::\w+)?\)?)+", "?,", text)


def kinds(values: Values) -> str:
    """Which kinds of values are among them: those that a database may treat in another way."""
    rows = values.values() if isinstance(values, dict) else values or ()
    if isinstance(rows, Iterator):  # reading it would leave nothing for the database
        return "rows"
    some = islice(rows, _MOST_ROWS)
    flat = (v for row in some for v in (row if isinstance(row, (list, tuple)) else (row,)))
    return " ".join(sorted({_kind(value) for value in flat}))


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return (
            ("NUL" if "\0" in value else "")
            + ("" if value.isascii() else "Unicode" if value.isprintable() else "odd")
            + ("long" if len(value) > _LONG_TEXT else "text")
        )
    if isinstance(value, int):
        size = abs(value)
        return "int" if size < _INTEGER else "bigint" if size < _BIG_INTEGER else "huge"
    return type(value).__name__
