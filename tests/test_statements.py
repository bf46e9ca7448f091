"""PostgreSQL gets every statement that tests execute on SQLite, from enough tests."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.statements import ENOUGH, kinds, needed, shape

MARKS: dict[str, Any] = {
    "commits": {"django_db": SimpleNamespace(kwargs={"transaction": True})},
    "named": {"postgresql": SimpleNamespace(kwargs={})},
}


class Item:
    """A test, as far as it matters here."""

    def __init__(self, name: str, *fixtures: str) -> None:
        self.nodeid, self.fixturenames = name, fixtures

    def get_closest_marker(self, name: str) -> Any:
        return MARKS.get(self.nodeid, {}).get(name)


def chosen(noted: dict[str, str], items: list[Item], folder: Path, seed: int) -> set[str]:
    file = folder / "statements.txt"
    file.write_text("".join(f"{name}\t{found}\n" for name, found in noted.items()))
    config: Any = SimpleNamespace(option=SimpleNamespace(statements=file, seed=seed))
    return {item.nodeid for item in needed(config, items)}  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(20))
def test_each_statement_is_executed_by_enough_tests_if_there_are_so_many(
    tmp_path: Path, seed: int
) -> None:
    noted = {f"t{n}": f"common {n % 7} of{n % 3}" for n in range(40)} | {"lonely": "common only"}
    present = chosen(noted, [Item(name) for name in noted], tmp_path, seed)
    assert len(present) < len(noted) / 2
    of_all = Counter(s for found in noted.values() for s in found.split())
    of_those = Counter(s for name in present for s in noted[name].split())
    assert all(of_those[s] >= min(ENOUGH, count) for s, count in of_all.items())


def test_some_tests_run_whatever_others_execute(tmp_path: Path) -> None:
    always = [
        *(Item("commits"), Item("named"), Item("uses", "transactional_db")),
        *(Item("tests/facts/test_steps.py::test_new"), Item("not noted")),
    ]
    noted = {f"t{n}": "common" for n in range(40)}
    noted |= {item.nodeid: "common" for item in always if item.nodeid != "not noted"}
    items = [*always, *(Item(name) for name in noted if name.startswith("t") and "/" not in name)]
    present = chosen(noted, items, tmp_path, 1)
    assert {item.nodeid for item in always} <= present
    assert len(present) <= len(always) + ENOUGH


def test_without_notes_every_test_runs(tmp_path: Path) -> None:
    items = [Item(f"t{n}") for n in range(40)]
    assert len(chosen({}, items, tmp_path, 1)) == len(items)


@pytest.mark.parametrize(
    ("one", "another", "are_same"),
    [
        ("SELECT a WHERE b IN (%s, %s)", "SELECT a WHERE b IN (%s, %s, %s, %s)", True),
        ("INSERT INTO a VALUES (%s, %s)", "INSERT INTO a VALUES (%s, %s), (%s, %s)", True),
        ('SAVEPOINT "s140_x1"', 'SAVEPOINT "s141_x22"', True),
        ("SELECT a LIMIT 21", "SELECT a LIMIT 100", True),
        ("SELECT a WHERE b = 'x'", "SELECT a WHERE b = 'it''s'", True),
        ("SELECT a WHERE b = %s", "SELECT a WHERE b >= %s", False),
        ("SELECT a", "SELECT a FOR UPDATE", False),
        ("SELECT a ORDER BY b", "SELECT a ORDER BY b DESC", False),
    ],
)
def test_a_statement_is_another_if_its_words_are(one: str, another: str, are_same: bool) -> None:
    assert (shape(one) == shape(another)) is are_same


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (["a"], ["a\0"]),
        (["a"], ["é"]),
        (["é"], ["\ud800"]),
        (["a"], ["a" * 256]),
        ([1], [2**31]),
        ([2**31], [2**63]),
        ([1], [None]),
        ([[1, 2]], [[1, "a"]]),
        ({"a": 1}, {"a": "1"}),
        (None, [1]),
    ],
)
def test_values_that_a_database_may_treat_in_another_way_are_another_kind(
    one: Any, another: Any
) -> None:
    assert kinds(one) != kinds(another)


def test_rows_that_can_be_read_once_are_left_for_the_database() -> None:
    rows = iter([[1], [2]])
    kinds(rows)
    assert list(rows) == [[1], [2]]
