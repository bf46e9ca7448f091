"""A search that would take long is stopped, and says so (PostgreSQL)."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.test import Client
from django.urls import reverse

from identity.staff.framework import search
from identity.staff.registry.taxpayers import TaxpayerAdmin
from taxpayers.models import Change, Taxpayer
from tests.support.factories import TaxpayerFactory
from tests.support.staff import list_url, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

TEXT = "This search is too general, and was stopped. Add another word, or search for a number."
TAXPAYERS = list_url(Taxpayer)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that takes a minute."""
    sql = "SELECT id FROM taxpayers WHERE pg_sleep(60) IS NOT NULL"
    minute = Q(pk__in=RawSQL(sql, ()))  # noqa: S611 - a constant
    monkeypatch.setattr(search, "SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(TaxpayerAdmin, "search_conditions", lambda *_: [minute])
    TaxpayerFactory.create()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("path", [TAXPAYERS, reverse("staff_search")])
def test_a_page_says_that_the_search_is_too_general(path: str, registrar: Client) -> None:
    page = registrar.get(path, {"q": "sdn bhd trading"})
    assert page.status_code == 200
    assert TEXT in text_of(page)


@pytest.mark.usefixtures("slow")
def test_there_is_no_empty_export_of_it_and_there_are_no_suggestions(registrar: Client) -> None:
    answer: Any = registrar.get(f"{TAXPAYERS}export.csv?q=sdn")
    assert (answer.status_code, answer["Location"]) == (302, f"{TAXPAYERS}?q=sdn")
    assert not Change.objects.exists()
    suggested: Any = registrar.get(f"{TAXPAYERS}suggest/?q=sdn")
    assert suggested.json() == {"suggestions": []}


def test_the_limit_is_for_the_search_and_for_nothing_after_it(registrar: Client) -> None:
    TaxpayerFactory.create(name="Kedai Emas")
    assert "Kedai Emas" in text_of(registrar.get(TAXPAYERS, {"q": "emas"}))
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)
