"""PostgreSQL gets every statement that tests execute on SQLite, from enough tests."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def test_each_statement_is_executed_by_enough_tests_if_there_are_so_many(
    tmp_path: Path,
) -> None:
    noted = {f"t{n}": f"common {n % 7} of{n % 3}" for n in range(40)} | {"lonely": "common only"}
    present = chosen(noted, [Item(name) for name in noted], tmp_path, seed=1)
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


def test_other_words_or_another_kind_of_value_make_another_statement() -> None:
    assert shape("SELECT a WHERE b IN (%s, %s)") == shape("SELECT a WHERE b IN (%s, %s, %s)")
    assert shape("SELECT a") != shape("SELECT a FOR UPDATE")
    assert kinds(["a"]) != kinds(["a\0"])
