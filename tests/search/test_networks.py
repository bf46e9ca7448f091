"""A network or an address finds who is limited to it, and what came from it."""

import pytest
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.test import Client
from django.utils import timezone

from identity.staff.framework import search
from identity.staff.logins import login_search
from identity.staff.models import StaffSignIn
from taxpayers.models import SystemUser
from tests.search.test_search_box import found
from tests.support.factories import CredentialFactory, SystemUserFactory, stored_login
from tests.support.staff import list_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

LIMITED = {
    "shop": "203.0.113.0/24",
    "till": "192.0.2.0/24 203.0.113.16/28",
    "host": "203.0.113.200/32",
    "wide": "203.0.0.0/16",
    "six": "2001:db8:0:8::/61",
    "other": "3.0.113.0/24 198.51.100.7/32",
}


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("203.0.113.0/24", {"shop", "till", "host", "wide"}),
        ("203.0.113.9/24", {"shop", "till", "host", "wide"}),  # any address of it
        ("203.0.113.20", {"shop", "till", "wide"}),
        ("203.0.113.192/26", {"shop", "host", "wide"}),
        ("203.0.112.0/24", {"wide"}),
        ("2001:db8::/32", {"six"}),
        ("2001:DB8:0:d::1", {"six"}),
        ("2001:db8:0:10::/64", set()),
        ("198.51.100.0/24", {"other"}),
        ("1.0.0.0/8", set()),
    ],
)
def test_who_is_limited_to_networks_that_meet_it(
    typed: str, names: set[str], officer: Client
) -> None:
    for name, networks in LIMITED.items():
        CredentialFactory.create(system_user__name=name, allowed_networks=networks)
    SystemUserFactory.create(name="from anywhere")
    replaced = {"slot": None, "allowed_networks": "0.0.0.0/1"}
    CredentialFactory.create(system_user__name="replaced", **replaced)
    listed = officer.get(list_url(SystemUser), {"q": typed}).context["cl"].result_list
    assert {row.name for row in listed} == names
    assert set(found(officer, typed).get("System users", ())) == names


FROM = {
    "203.0.113.0/24": {"203.0.113.0", "203.0.113.9", "203.0.113.100", "203.0.113.255"},
    "203.0.113.96/28": {"203.0.113.100"},
    "2001:db8::/32": {"2001:db8::1", "2001:db8:0:1::5"},
    "2001:db8::/64": {"2001:db8::1"},
    "192.0.2.0/28": set(),
}
OUTSIDE = {"203.0.112.255", "203.0.114.0", "20.30.113.9", "2001:db9::1", None}


@pytest.mark.parametrize("typed", FROM)
def test_logins_from_a_network_newest_first(typed: str, officer: Client) -> None:
    for address in OUTSIDE.union(*FROM.values()):
        stored_login(source_address=address)
    assert found(officer, typed) == {"Logins": [f"Logins from {typed}"]}
    listed = list(officer.get(list_url(LoginEvent), {"q": typed}).context["cl"].result_list)
    assert {row.source_address for row in listed} == FROM[typed]
    assert [row.pk for row in listed] == sorted((row.pk for row in listed), reverse=True)


def test_sign_ins_of_staff_from_a_network(auditor: Client) -> None:
    for address in ("203.0.113.9", "203.0.112.9"):
        StaffSignIn.objects.create(
            at=timezone.now(), outcome=StaffSignIn.SIGNED_IN, address=address
        )
    listed = auditor.get(list_url(StaffSignIn), {"q": "203.0.113.0/24"}).context["cl"].result_list
    assert [row.address for row in listed] == ["203.0.113.9"]


@pytest.mark.postgresql
def test_a_network_with_too_many_logins_is_too_general(
    officer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT id FROM login_events WHERE pg_sleep(60) IS NOT NULL"
    minute = Q(pk__in=RawSQL(sql, ()))  # noqa: S611 - a constant
    monkeypatch.setattr(search, "SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(login_search, "came_from", lambda *_: minute)
    stored_login()
    assert "too general" in text_of(officer.get(list_url(LoginEvent), {"q": "203.0.113.0/24"}))
