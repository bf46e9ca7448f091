"""An import of taxpayers is undone as one change, while nothing was built upon it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from taxpayers.models import Change, Taxpayer
from taxpayers.standing.differences import COMPARED
from tests.registry.other_import import another_import
from tests.support.command_line import error_of, json_output_of
from tests.support.factories import GrantedPermissionFactory, IntermediaryFactory, SystemUserFactory
from tests.support.staff import page_url, task_url, text_of

pytestmark = pytest.mark.django_db
TINS = ["C9000000001", "C9000000002", "C9000000003"]
WHY = {"reason": "the wrong file"}
__all__ = ["another_import"]  # the fixture


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Two new taxpayers, and one that was registered before."""
    json_output_of("register_taxpayer", TINS[0], "--name", "Kedai")
    path = tmp_path / "wrong.csv"
    path.write_text("tin,name\n" + "".join(f"{tin},Kedai\n" for tin in TINS))
    json_output_of("import_registry", str(path))
    return str(path)


def imported() -> Change:
    return Change.objects.filter(action="import_registry").latest("pk")


def undo(change: Change) -> tuple[str, ...]:
    return "undo_import", str(change.pk), "--reason", "the wrong file"


def tins() -> set[str]:
    return set(Taxpayer.objects.values_list("tin", flat=True))


def test_a_registrar_undoes_it_and_the_history_shows_both(file: str, registrar: Client) -> None:
    url = task_url(imported(), "undo_import")
    task = registrar.get(reverse("admin:taxpayers_change_task", args=[imported().pk]))
    assert url in task.content.decode()
    asked = text_of(registrar.get(url))
    assert "wrong.csv" in asked
    assert "2 taxpayers are removed." in asked
    assert registrar.post(url, {"reason": ""}).status_code == 200
    assert tins() == {*TINS}
    assert "2 taxpayers were removed." in text_of(registrar.post(url, WHY, follow=True))
    assert tins() == {TINS[0]}
    undone = Change.objects.filter(action="undo_import")
    assert {(row.by, row.reason) for row in undone} == {("nurul", "the wrong file")}
    assert len({row.task_id for row in undone}) == 1
    assert {row.before["tin"] for row in undone} == {*TINS[1:]}
    key, removal = undone[0].object_id, page_url(undone[0])
    before = registrar.get(reverse("admin:taxpayers_taxpayer_change", args=[key]))
    assert before["Location"] == removal  # what links of before it lead to
    assert [*COMPARED[0].differences()] == []  # the history says that they are gone
    assert "This import was undone." in error_of(*undo(imported()))
    _everything_about_it_is_reported(registrar, ["undo_import", "import_registry"])
    assert json_output_of("import_registry", file)["registered"] == 2
    _everything_about_it_is_reported(
        registrar, ["import_registry", "undo_import", "import_registry"]
    )
    page = text_of(registrar.get(page_url(Taxpayer.objects.get(tin=TINS[1]))))
    assert page.count("Removed the taxpayer") == 1
    assert json_output_of(*undo(imported())) == {"removed": 2}


def _everything_about_it_is_reported(client: Client, actions: list[str]) -> None:
    """Also what was done before it was removed, under the same TIN and no other one."""
    report = client.get(reverse("admin:taxpayers_change_report"), {"about": TINS[1]})
    assert [line.first.action for line in report.context["lines"]] == actions
    assert {line.about for line in report.context["lines"]} == {f"{TINS[1]} Kedai"}
    assert f"with this identifier, {TINS[1]} Kedai, was removed" in text_of(report)


BUILDS: dict[str, Callable[[Taxpayer], Any]] = {
    "system user": lambda row: SystemUserFactory.create(taxpayer=row),
    "intermediary": lambda row: IntermediaryFactory.create(taxpayer=row),
    "permission": lambda row: GrantedPermissionFactory.create(taxpayer=row),
    "change": lambda row: json_output_of("deactivate_taxpayer", row.tin),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_nothing_is_undone_once_something_was_built_upon_one(
    build: Callable[[Taxpayer], Any], file: str, registrar: Client
) -> None:
    build(Taxpayer.objects.get(tin=TINS[2]))
    page = registrar.post(task_url(imported(), "undo_import"), WHY, follow=True)
    assert "was changed since, or is used" in text_of(page)
    assert TINS[2] in error_of(*undo(imported()))
    assert {*TINS} <= tins()


def test_nothing_is_undone_while_another_import_runs(file: str, another_import: None) -> None:
    assert "Another import is running" in error_of(*undo(imported()))


def test_only_an_import_of_taxpayers_has_the_button(file: str, registrar: Client) -> None:
    first = Change.objects.earliest("pk")
    for row, shown in ((imported(), True), (first, False)):
        titles = [str(one.title) for one in registrar.get(page_url(row)).context["buttons"]]
        assert ("Undo the import" in titles) is shown
    assert "not an import of taxpayers" in error_of(*undo(first))
    assert "no change 999" in error_of("undo_import", "999")
