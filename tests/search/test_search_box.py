"""The search box: everything that this person may see, grouped, the exact hit first."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.framework import search
from identity.staff.logins import login_search
from identity.staff.models import StaffSignIn
from identity.staff.registry.taxpayers import TaxpayerAdmin
from taxpayers.models import Change, SystemUser, Taxpayer
from tests.support import make
from tests.support.accounts import signed_in, with_totp
from tests.support.answers import body_of
from tests.support.erp import Erp
from tests.support.factories import stored_login
from tests.support.staff import list_url, page_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
URL = "/admin/search/"
AJAX = {"X-Requested-With": "XMLHttpRequest"}


@pytest.fixture
def shop(db: None) -> Taxpayer:
    make.taxpayer(name="Another company")
    return make.taxpayer(tin="C77000111", name="Kedai Runcit Ahmad Sdn Bhd")


def found(client: Client, term: str) -> dict[str, list[Any]]:
    response = client.get(URL, {"q": term})
    assert response.status_code == 200
    groups = response.context["found"]
    return {str(group.title): [hit.title for hit in group.hits] for group in groups}


@pytest.mark.parametrize("term", ["runcit", "AHMAD kedai", "uncit", "c77000"])
def test_a_part_of_a_name_or_tin_finds_every_kind_of_record(
    term: str, officer: Client, shop: Taxpayer
) -> None:
    make.system_user(taxpayer=shop, name="Shop till")
    make.intermediary(taxpayer=shop)
    assert found(officer, term) == {
        "Taxpayers": [shop.name],
        "System users": ["Shop till"],
        "Intermediaries": [shop.name],
    }


def test_the_exact_hit_comes_first_with_its_badge(officer: Client, shop: Taxpayer) -> None:
    user = make.system_user(taxpayer=shop, name="Shop till")
    longer = make.taxpayer(tin="C770001112", name="Another")
    assert found(officer, "c77000111") == {
        "Exact match": [shop.name],
        "Taxpayers": [longer.name],
        "System users": ["Shop till"],
    }
    assert next(iter(found(officer, user.client_id).items())) == ("Exact match", ["Shop till"])
    page = officer.get(URL, {"q": user.client_id}).content.decode()
    assert page_url(user) in page
    assert 'class="badge' in page
    make.taxpayer(tin="C99000111", name="Head office")
    make.taxpayer(tin="C99000111", rob="ROB-12345", name="Branch")
    assert found(officer, "C99000111:ROB-12345") == {"Exact match": ["Branch"]}
    assert found(officer, "rob-123") == found(officer, "branch") == {"Taxpayers": ["Branch"]}
    [make.taxpayer(name="Emas") for _ in range(8)]
    many = officer.get(URL, {"q": "emas"})
    assert len(many.context["found"][0].hits) == 6
    assert f"{reverse('admin:taxpayers_taxpayer_changelist')}?q=emas" in many.content.decode()


def test_a_client_id_and_a_reference_are_found_in_a_pasted_message(
    officer: Client, erp: Erp
) -> None:
    user = make.system_user(name="Shop till")
    hits = found(officer, f"Our client_id is {user.client_id}, please help")
    assert hits["Exact match"] == ["Shop till"]
    assert hits["Logins"] == ["Logins of this client ID"]
    hits = found(officer, f"invalid_client (Reference: {erp.login()['correlationId']})")
    assert list(hits) == ["Exact match"]
    assert hits["Exact match"][0].startswith("Login of ")
    unknown = "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f"
    assert found(officer, unknown) == {"Logins": ["No login with this reference is recorded"]}
    page = officer.get(URL, {"q": unknown}).content.decode()
    assert f"/admin/tokens/loginevent/?q={unknown}" in page  # the list that says why
    assert found(officer, "192.0.2.7") == {"Logins": ["Logins from 192.0.2.7"]}


def test_a_person_is_found_by_name_and_leads_to_their_changes(officer: Client) -> None:
    get_user_model().objects.create_user("nurul.h", first_name="Nurul", last_name="Huda")
    get_user_model().objects.create_user("li")
    assert found(officer, "li") == {"Exact match": ["li"]}
    assert found(officer, "huda nurul") == {"Changes by a person": ["Nurul Huda"]}
    assert found(officer, "nurul.h") == {"Exact match": ["Nurul Huda"]}
    page = officer.get(URL, {"q": "nurul.h"}).content.decode()
    assert "/admin/taxpayers/change/report/?by=nurul.h" in page
    assert "nurul.h · Changes by a person" in page
    # Also who is only in the history, by the exact name.
    Change.objects.create(by="operator (manage.py)", action="block_system_user", label="x")
    assert found(officer, "operator (manage.py)") == {"Exact match": ["operator (manage.py)"]}


def test_who_has_no_role_finds_nothing(shop: Taxpayer, erp: Erp) -> None:
    reference = erp.login()["correlationId"]
    user = get_user_model().objects.create_user("newcomer", is_staff=True)
    client = signed_in(with_totp(user))
    for term in ("kedai", shop.tin, erp.client_id, reference, "192.0.2.7", "newcomer"):
        assert found(client, term) == {}, term


def test_a_plain_form_leads_to_an_address_that_can_be_sent_to_a_colleague(
    officer: Client, shop: Taxpayer
) -> None:
    response = officer.post(URL, {"q": " kedai   runcit "})
    assert (response.status_code, response["Location"]) == (302, f"{URL}?q=kedai+runcit")
    page = officer.post(URL, {"q": "runcit"}, headers=AJAX).content.decode()  # of the script
    assert "<html" not in page
    assert shop.name in page
    assert 'data-status="1 result"' in page
    for text in ("", "a", "\0", "%_\\'\"", "x" * 20_000, "9" * 5_000, "٣", "[" * 3_000, "💩" * 9):
        assert officer.post(URL, {"q": text}).status_code == 302
        assert officer.post(URL, {"q": text}, headers=AJAX).status_code == 200


def test_a_pasted_secret_is_neither_searched_nor_shown_nor_put_into_an_address(
    officer: Client,
) -> None:
    row: Any = make.credential()
    for typed in (row.clear, "Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln"):
        for headers in ({}, AJAX):
            response: Any = officer.post(URL, {"q": typed}, headers=headers)
            assert response.status_code == 200  # no redirect to an address with it
            assert "found" not in response.context
            page = response.content.decode()
            assert "Treat it as compromised" in page
            assert not {part for part in (typed, typed[-10:]) if part in page}
            assert row.system_user.client_id not in page


def test_every_page_has_the_search_field(officer: Client, shop: Taxpayer) -> None:
    for path in ("/admin/", page_url(shop), "/admin/taxpayers/taxpayer/", URL, "/admin/nothing/"):
        assert f'action="{URL}"' in officer.get(path).content.decode(), path


def test_parts_and_groups_are_found_and_enter_on_one_exact_hit_opens_it(
    officer: Client, shop: Taxpayer, erp: Erp
) -> None:
    for typed in ("C 7700 0111", "c-77000-111"):
        assert found(officer, typed) == {"Exact match": [shop.name]}
        assert officer.post(URL, {"q": typed})["Location"] == page_url(shop)
    assert officer.post(URL, {"q": "kedai"})["Location"] == f"{URL}?q=kedai"
    reference = erp.login()["correlationId"]
    for part in (reference[:8], reference[:16]):
        assert found(officer, part)["Logins"][0].startswith("Login of ")
        listed = officer.get(list_url(LoginEvent), {"q": part}).context["cl"].result_list
        assert [str(row.pk) for row in listed] == [reference]
    hint = erp.client_secret[-4:]
    assert found(officer, f"…{hint}") == {"System users": [erp.system_user.name or erp.client_id]}


def test_a_pasted_token_says_whose_it_is_once_its_signature_is_right(
    officer: Client, erp: Erp
) -> None:
    token = body_of(erp.login())["access_token"]
    head, claims, signature = token.split(".")
    page = officer.post(URL, {"q": f"Bearer {token}"})
    assert page_url(erp.system_user) in page.content.decode()
    assert token[-12:] not in page.content.decode()
    forged = officer.post(URL, {"q": f"{head}.{claims}.{signature[::-1]}"})
    assert page_url(erp.system_user) not in forged.content.decode()


TEXT = "This search is too general, and was stopped. Add another word, or search for a number."
TAXPAYERS = list_url(Taxpayer)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT id FROM taxpayers WHERE pg_sleep(60) IS NOT NULL"
    minute = Q(pk__in=RawSQL(sql, ()))  # noqa: S611 - a constant
    monkeypatch.setattr(search, "SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(TaxpayerAdmin, "search_conditions", lambda *_: [minute])
    of_logins = RawSQL(sql.replace("taxpayers", "login_events"), ())  # noqa: S611 - a constant
    monkeypatch.setattr(login_search, "came_from", lambda *_: Q(pk__in=of_logins))
    make.taxpayer()
    stored_login()


@pytest.mark.postgresql
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("path", "term"),
    [
        *((path, "sdn bhd trading") for path in (TAXPAYERS, reverse("staff_search"))),
        (list_url(LoginEvent), "203.0.113.0/24"),
    ],
)
def test_a_page_says_that_the_search_is_too_general(path: str, term: str, officer: Client) -> None:
    page = officer.get(path, {"q": term})
    assert page.status_code == 200
    assert TEXT in text_of(page)


@pytest.mark.postgresql
@pytest.mark.usefixtures("slow")
def test_there_is_no_empty_export_of_it_and_there_are_no_suggestions(registrar: Client) -> None:
    answer: Any = registrar.get(f"{TAXPAYERS}export.csv?q=sdn")
    assert (answer.status_code, answer["Location"]) == (302, f"{TAXPAYERS}?q=sdn")
    assert not Change.objects.exists()
    suggested: Any = registrar.get(f"{TAXPAYERS}suggest/?q=sdn")
    assert suggested.json() == {"suggestions": []}


@pytest.mark.postgresql
def test_the_limit_is_for_the_search_and_for_nothing_after_it(registrar: Client) -> None:
    make.taxpayer(name="Kedai Emas")
    assert "Kedai Emas" in text_of(registrar.get(TAXPAYERS, {"q": "emas"}))
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)


LIMITED = {
    "shop": "203.0.113.0/24",
    "till": "192.0.2.0/24 203.0.113.16/28",
    "host": "203.0.113.200/32",
    "wide": "203.0.0.0/16",
    "six": "2001:db8:0:8::/61",
    "other": "3.0.113.0/24 198.51.100.7/32",
}


MEETS: dict[str, set[str]] = {
    "203.0.113.0/24": {"shop", "till", "host", "wide"},
    "203.0.113.9/24": {"shop", "till", "host", "wide"},  # any address of it
    "203.0.113.20": {"shop", "till", "wide"},
    "203.0.113.192/26": {"shop", "host", "wide"},
    "203.0.112.0/24": {"wide"},
    "2001:db8::/32": {"six"},
    "2001:DB8:0:d::1": {"six"},
    "2001:db8:0:10::/64": set(),
    "198.51.100.0/24": {"other"},
    "1.0.0.0/8": set(),
}


def test_who_is_limited_to_networks_that_meet_it(officer: Client) -> None:
    for name, networks in LIMITED.items():
        make.credential(system_user__name=name, allowed_networks=networks)
    make.system_user(name="from anywhere")
    replaced = {"slot": None, "allowed_networks": "0.0.0.0/1"}
    make.credential(system_user__name="replaced", **replaced)
    for typed, names in MEETS.items():
        listed = officer.get(list_url(SystemUser), {"q": typed}).context["cl"].result_list
        assert {row.name for row in listed} == names, typed
        assert set(found(officer, typed).get("System users", ())) == names


FROM = {
    "203.0.113.0/24": {"203.0.113.0", "203.0.113.9", "203.0.113.100", "203.0.113.255"},
    "203.0.113.96/28": {"203.0.113.100"},
    "2001:db8::/32": {"2001:db8::1", "2001:db8:0:1::5"},
    "2001:db8::/64": {"2001:db8::1"},
    "192.0.2.0/28": set(),
}
OUTSIDE = {"203.0.112.255", "203.0.114.0", "20.30.113.9", "2001:db9::1", None}


def test_logins_from_a_network_newest_first(officer: Client) -> None:
    for address in OUTSIDE.union(*FROM.values()):
        stored_login(source_address=address)
    for typed, addresses in FROM.items():
        assert found(officer, typed) == {"Logins": [f"Logins from {typed}"]}
        listed = list(officer.get(list_url(LoginEvent), {"q": typed}).context["cl"].result_list)
        assert {row.source_address for row in listed} == addresses
        assert [row.pk for row in listed] == sorted((row.pk for row in listed), reverse=True)


def test_sign_ins_of_staff_from_a_network(auditor: Client) -> None:
    for address in ("203.0.113.9", "203.0.113.8", "203.0.112.9"):
        StaffSignIn.objects.create(
            at=timezone.now(), outcome=StaffSignIn.SIGNED_IN, address=address
        )
    for typed in ("203.0.113.0/24", "203.0.113.8/31"):
        listed = auditor.get(list_url(StaffSignIn), {"q": typed}).context["cl"].result_list
        assert {row.address for row in listed} == {"203.0.113.8", "203.0.113.9"}
