"""An import of taxpayers is undone as one change, while nothing was built upon it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, Taxpayer
from taxpayers.services import Author
from taxpayers.standing.differences import COMPARED
from tests.support.command_line import error_of, json_output_of
from tests.support.factories import (
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
)
from tests.support.staff import page_url, task_url, text_of

pytestmark = pytest.mark.django_db
TINS = ["C9000000001", "C9000000002", "C9000000003"]


def by() -> dict[str, Any]:
    return {"by": Author("aminah"), "at": timezone.now()}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Two new taxpayers, and one that was registered before."""
    services.register_taxpayer(taxpayer=TaxpayerId(TINS[0]), name="Kedai", **by())
    path = tmp_path / "wrong.csv"
    path.write_text("tin,name\n" + "".join(f"{tin},Kedai\n" for tin in TINS))
    json_output_of("import_registry", str(path))
    return str(path)


def imported() -> Change:
    return Change.objects.filter(action="import_registry").latest("pk")


def tins() -> list[str]:
    return list(Taxpayer.objects.order_by("tin").values_list("tin", flat=True))


def test_a_registrar_undoes_it_and_the_history_shows_both(file: str, registrar: Client) -> None:
    url = task_url(imported(), "undo_import")
    whole = reverse("admin:taxpayers_change_task", args=[imported().pk])
    assert url in registrar.get(whole).content.decode()
    page = registrar.get(url)
    assert "2 taxpayers are removed." in text_of(page)
    assert "wrong.csv" in text_of(page)
    assert registrar.post(url, {"reason": ""}).status_code == 200
    assert tins() == TINS
    assert "2 taxpayers were removed." in text_of(
        registrar.post(url, {"reason": "the wrong file"}, follow=True)
    )
    assert tins() == TINS[:1]
    undone = Change.objects.filter(action="undo_import")
    assert {(row.by, row.reason) for row in undone} == {("nurul", "the wrong file")}
    assert len({row.task_id for row in undone}) == 1
    assert sorted(row.before["tin"] for row in undone) == TINS[1:]
    assert [*COMPARED[0].differences()] == []  # the history says that they are gone
    number = str(imported().pk)
    assert "This import was undone." in error_of("undo_import", number, "--reason", "again")
    assert json_output_of("import_registry", file)["registered"] == 2
    assert json_output_of("undo_import", str(imported().pk), "--reason", "x") == {"removed": 2}


@pytest.mark.parametrize(
    "build",
    [
        lambda row: SystemUserFactory.create(taxpayer=row),
        lambda row: IntermediaryFactory.create(taxpayer=row),
        lambda row: GrantedPermissionFactory.create(taxpayer=row),
        lambda row: services.rename_taxpayer(taxpayer=row, name="Toko", reason="x", **by()),
    ],
    ids=["system user", "intermediary", "permission", "change"],
)
def test_nothing_is_undone_once_something_was_built_upon_one(
    build: Callable[[Taxpayer], object], file: str, registrar: Client
) -> None:
    build(Taxpayer.objects.get(tin=TINS[2]))
    page = registrar.post(
        task_url(imported(), "undo_import"), {"reason": "the wrong file"}, follow=True
    )
    assert "was changed since, or is used" in text_of(page)
    assert set(TINS) <= set(tins())
    number = str(imported().pk)
    assert TINS[2] in error_of("undo_import", number, "--reason", "x")


def test_only_an_import_of_taxpayers_has_the_button(file: str, registrar: Client) -> None:
    first = Change.objects.order_by("pk").first()
    assert first is not None
    for row, shown in ((imported(), True), (first, False)):
        titles = [str(one.title) for one in registrar.get(page_url(row)).context["buttons"]]
        assert ("Undo the import" in titles) is shown
    assert "not an import of taxpayers" in error_of("undo_import", str(first.pk), "--reason", "x")
    assert "no change 999" in error_of("undo_import", "999", "--reason", "x")
