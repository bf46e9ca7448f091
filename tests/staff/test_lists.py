"""Lists: search, filters and suggestions; none counts a large table."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from identity.staff.framework.search import CappedPaginator
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import list_url
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
LISTS: list[type[Model]] = [
    Taxpayer,
    Intermediary,
    GrantedPermission,
    SystemUser,
    LoginEvent,
]


def listed(client: Client, model: type[Model], query: str) -> list[Any]:
    response = client.get(list_url(model) + query)
    assert response.status_code == 200, response.status_code
    return list(response.context["cl"].result_list)


@pytest.mark.parametrize("model", LISTS, ids=lambda m: m.__name__)
def test_a_list_counts_no_further_than_its_cap_and_takes_no_condition_of_the_reader(
    model: type[Model], officer: Client
) -> None:
    assert tuple(admin.site.get_model_admin(model).sortable_by or ()) == ()
    for query in ("", "?q=C00", "?_facets=True"):
        with CaptureQueriesContext(connection) as queries:
            page = officer.get(list_url(model) + query)
        asked = [query["sql"] for query in queries]
        counts = [sql for sql in asked if re.search(r"\bCOUNT\(", sql, re.IGNORECASE)]
        assert all(f"LIMIT {CappedPaginator.max_rows + 1}" in sql for sql in counts), counts
        assert not page.context["cl"].add_facets
    for query in (
        "?pk__gt=1",
        "?name__icontains=a",
        "?at__lt=2026-01-01",
        "?credentials__lookup=x",
    ):
        assert officer.get(f"{list_url(model)}?{query}").status_code == 400, query


def test_a_list_beyond_the_cap_says_so_without_counting(
    officer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "max_rows", 3)
    TaxpayerFactory.create_batch(5)
    response = officer.get(list_url(Taxpayer))
    assert b"The first 3 records. Search or filter to see others." in response.content


def test_a_record_is_found_by_what_it_is_known_by(officer: Client) -> None:
    GrantedPermissionFactory.create()
    SystemUserFactory.create_batch(2)
    owner = TaxpayerFactory.create(tin="C77000111", rob="ROB-12345", name="Kedai Runcit Ahmad")
    user = SystemUserFactory.create(taxpayer=owner, name="Shop till")
    role = IntermediaryFactory.create(taxpayer__tin="C88000222")
    granted = GrantedPermissionFactory.create(taxpayer=owner, intermediary=role)
    for record, terms in {
        owner: ("c77000", "C77000111", "c77000111:rob-1", "Kedai", "kedai run"),
        user: (user.client_id, user.client_id[:20], "C77000111", "Kedai", "shop"),
        granted: ("C77000111", "c88000222"),
        role: ("C88000222",),
    }.items():
        for term in terms:
            assert listed(officer, type(record), f"?q={term}") == [record], term
        assert listed(officer, type(record), "?q=unknown") == []


def test_lists_are_filtered_by_state_and_end(officer: Client) -> None:
    at, day = timezone.now(), timedelta(days=1)
    blocked = SystemUserFactory.create(blocked_at=at, blocked_by="x", blocked_reason="y")
    ended = SystemUserFactory.create(expires_at=at - day)
    soon, later = (SystemUserFactory.create(expires_at=at + days * day) for days in (5, 60))
    inactive = SystemUserFactory.create(taxpayer__is_active=False)
    CredentialFactory.create()
    endless = GrantedPermissionFactory.create()
    ending = GrantedPermissionFactory.create(valid_until=at + 5 * day)
    over = GrantedPermissionFactory.create(valid_from=at - 14 * day, valid_until=at - 7 * day)
    revoked = GrantedPermissionFactory.create(revoked_at=at - day / 24)
    coming = GrantedPermissionFactory.create(valid_from=at + 7 * day)
    for model, query, rows in (
        (SystemUser, "state=blocked", [blocked]),
        (SystemUser, "state=expired", [ended]),
        (SystemUser, "state=no_secret", [inactive, later, soon, ended, blocked]),
        (SystemUser, "state=taxpayer", [inactive]),
        *((SystemUser, f"state={days}", [soon]) for days in (7, 30)),
        (SystemUser, "state=90", [later, soon]),
        (GrantedPermission, "state=in_force", [ending, endless]),
        (GrantedPermission, "state=7", [ending]),
        (GrantedPermission, "state=expired", [over]),
        (GrantedPermission, "state=revoked", [revoked]),
        (GrantedPermission, "", [coming, revoked, over, ending, endless]),
    ):
        assert listed(officer, model, f"?{query}") == rows, query


def test_a_field_suggests_taxpayers_by_identifier_and_name(officer: Client) -> None:
    TaxpayerFactory.create_batch(12, name="Borneo Timber")
    wanted = TaxpayerFactory.create(tin="C77000111", rob="ROB-12345", name="Kedai Runcit")
    IntermediaryFactory.create(taxpayer=wanted)
    for model in (Taxpayer, Intermediary):
        for term in ("C7700", "kedai"):
            answer = officer.get(f"{list_url(model)}suggest/?q={term}").json()
            assert answer == {
                "suggestions": [{"value": "C77000111:ROB-12345", "label": "Kedai Runcit"}]
            }
    assert len(officer.get(f"{list_url(Taxpayer)}suggest/?q=borneo").json()["suggestions"]) == 10
    assert officer.get(f"{list_url(Taxpayer)}suggest/?q=bo").json() == {"suggestions": []}
    assert Client().get(f"{list_url(Taxpayer)}suggest/?q=borneo").status_code == 302


@pytest.mark.parametrize("page", ["", "export.csv"])
def test_a_filter_that_the_list_does_not_have_is_named(page: str, officer: Client) -> None:
    answer = officer.get(f"{list_url(SystemUser)}{page}?colour<b>=red")
    content = answer.content.decode()
    assert answer.status_code == 400
    assert "This list has no filter with the name colour&lt;b&gt;." in content
    assert f'href="{list_url(SystemUser)}"' in content.partition("Bad request</h1>")[2]


def test_a_form_that_cannot_be_read_is_a_page_with_a_way_back(officer: Client) -> None:
    sent = {"action": "bulk_block_system_user", "_selected_action": "x"}
    answer = officer.post(list_url(SystemUser), sent)
    assert answer.status_code == 400
    assert "Open the page again and repeat what you did." in answer.content.decode()
