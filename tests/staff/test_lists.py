"""Lists search by index, never count a large table, and need a limited number of queries."""

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
# Session, user, its permissions twice (own and of its groups), and then those of the list.
MAX_QUERIES = 13


def listed(client: Client, model: type[Model], query: str) -> list[Any]:
    response = client.get(list_url(model) + query)
    assert response.status_code == 200, response.status_code
    return list(response.context["cl"].result_list)


@pytest.mark.parametrize("model", LISTS, ids=lambda m: m.__name__)
def test_a_list_of_many_rows_takes_few_queries_and_only_by_an_index(
    model: type[Model], officer: Client
) -> None:
    """It counts no further than its cap and no choices, and takes no condition of the reader."""
    assert tuple(admin.site.get_model_admin(model).sortable_by or ()) == ()
    for _ in range(30):
        secret = CredentialFactory.create()
        GrantedPermissionFactory.create(taxpayer=secret.system_user.taxpayer)
    for query in ("", "?q=C00", "?_facets=True"):
        with CaptureQueriesContext(connection) as queries:
            page = officer.get(list_url(model) + query)
        # Besides, on PostgreSQL, the four statements that limit how long a search may take.
        asked = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
        assert len(asked) <= MAX_QUERIES, asked
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
        assert listed(officer, type(record), "?q=nobody") == []


def test_system_users_are_filtered_by_state(officer: Client) -> None:
    at = timezone.now()
    blocked = SystemUserFactory.create(blocked_at=at, blocked_by="x", blocked_reason="y")
    expired = SystemUserFactory.create(expires_at=at - timedelta(days=1))
    soon = SystemUserFactory.create(expires_at=at + timedelta(days=5))
    later = SystemUserFactory.create(expires_at=at + timedelta(days=60))
    SystemUserFactory.create()
    inactive = SystemUserFactory.create(taxpayer__is_active=False)
    for state, rows in {
        "blocked": [blocked],
        "expired": [expired],
        "taxpayer": [inactive],
        "7": [soon],
        "30": [soon],
        "90": [later, soon],
    }.items():
        assert listed(officer, SystemUser, f"?state={state}") == rows, state


def test_system_users_are_filtered_by_the_expiry_of_their_secrets(officer: Client) -> None:
    at = timezone.now()
    day = timedelta(days=1)

    def user_of(**secret: Any) -> SystemUser:
        found: SystemUser = CredentialFactory.create(created_at=at - 90 * day, **secret).system_user
        return found

    expired = user_of(expires_at=at - day)
    replaced = user_of(expires_at=at - day)
    CredentialFactory.create(system_user=replaced, slot=2)
    soon = user_of(expires_at=at + 5 * day)
    user_of(slot=None, revoked_at=at - day)
    user_of()
    assert listed(officer, SystemUser, "?secret=expired") == [expired]
    assert listed(officer, SystemUser, "?secret=7") == [soon]


def test_permissions_are_filtered_by_state_as_the_rules_see_it(officer: Client) -> None:
    at = timezone.now()
    week = timedelta(days=7)
    endless = GrantedPermissionFactory.create()
    expiring = GrantedPermissionFactory.create(valid_until=at + timedelta(days=5))
    expired = GrantedPermissionFactory.create(valid_from=at - 2 * week, valid_until=at - week)
    revoked = GrantedPermissionFactory.create(revoked_at=at - timedelta(hours=1))
    coming = GrantedPermissionFactory.create(valid_from=at + week)
    assert listed(officer, GrantedPermission, "?state=in_force") == [expiring, endless]
    assert listed(officer, GrantedPermission, "?state=7") == [expiring]
    assert listed(officer, GrantedPermission, "?state=ended") == [expired]
    assert listed(officer, GrantedPermission, "?state=revoked") == [revoked]
    assert coming in listed(officer, GrantedPermission, "")


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
