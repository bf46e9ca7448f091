"""The search box: everything that this person may see, grouped, the exact hit first."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from taxpayers import actions
from taxpayers.credentials import new_client_secret
from taxpayers.models import Change, Taxpayer
from tests.support.accounts import signed_in, with_totp
from tests.support.erp import Erp
from tests.support.factories import (
    CredentialFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import page_url, staff_client, text_of

pytestmark = pytest.mark.django_db
URL = "/admin/search/"
AJAX = {"X-Requested-With": "XMLHttpRequest"}


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer")


@pytest.fixture
def shop(db: None) -> Taxpayer:
    TaxpayerFactory.create(name="Somebody else")
    return TaxpayerFactory.create(tin="C77000111", name="Kedai Runcit Ahmad Sdn Bhd")


def found(client: Client, term: str) -> dict[str, list[Any]]:
    """The hits of each group."""
    response = client.get(URL, {"q": term})
    assert response.status_code == 200
    groups = response.context["found"].groups
    return {str(group.title): [hit.title for hit in group.hits] for group in groups}


@pytest.mark.parametrize("term", ["runcit", "AHMAD kedai", "uncit", "c77000"])
def test_a_part_of_a_name_or_tin_finds_every_kind_of_record(
    term: str, officer: Client, shop: Taxpayer
) -> None:
    SystemUserFactory.create(taxpayer=shop, name="Shop till")
    IntermediaryFactory.create(taxpayer=shop)
    assert found(officer, term) == {
        "Taxpayers": [shop.name],
        "System users": ["Shop till"],
        "Intermediaries": [shop.name],
    }


def test_the_exact_hit_comes_first_with_its_badge(officer: Client, shop: Taxpayer) -> None:
    user = SystemUserFactory.create(taxpayer=shop, name="Shop till")
    longer = TaxpayerFactory.create(tin="C770001112", name="Another")
    assert found(officer, "c77000111") == {
        "Exact match": [shop.name],
        "Taxpayers": [longer.name],
        "System users": ["Shop till"],
    }
    assert next(iter(found(officer, user.client_id).items())) == ("Exact match", ["Shop till"])
    page = officer.get(URL, {"q": user.client_id}).content.decode()
    assert page_url(user) in page
    assert 'class="badge' in page


def test_a_taxpayer_with_a_rob_number_is_found_by_both(officer: Client) -> None:
    wanted = TaxpayerFactory.create(tin="C77000111", rob="ROB-12345", name="Branch")
    TaxpayerFactory.create(tin="C77000111", name="Head office")
    assert found(officer, "C77000111:ROB-12345") == {"Exact match": ["Branch"]}
    assert found(officer, "rob-123") == {"Taxpayers": ["Branch"]}
    assert found(officer, "branch") == {"Taxpayers": [wanted.name]}


def test_a_client_id_is_found_in_a_pasted_message(officer: Client) -> None:
    user = SystemUserFactory.create(name="Shop till")
    SystemUserFactory.create()
    hits = found(officer, f"Our client_id is {user.client_id}, please help")
    assert hits["Exact match"] == ["Shop till"]
    assert hits["Logins"] == ["Logins of this client ID"]


def test_a_reference_is_found_in_a_pasted_message(officer: Client, erp: Erp) -> None:
    reference = erp.login()["correlationId"]
    hits = found(officer, f"invalid_client (Reference: {reference})")
    assert list(hits) == ["Exact match"]
    assert hits["Exact match"][0].startswith("Login of ")


def test_a_reference_without_a_record_leads_to_the_list_that_says_why(officer: Client) -> None:
    reference = "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f"
    assert found(officer, reference) == {"Logins": ["No login with this reference is recorded"]}
    assert (
        f"/admin/tokens/loginevent/?q={reference}"
        in officer.get(URL, {"q": reference}).content.decode()
    )


def test_an_address_leads_to_its_logins(officer: Client) -> None:
    assert found(officer, "192.0.2.7") == {"Logins": ["Logins from 192.0.2.7"]}


def test_a_person_is_found_by_name_and_leads_to_their_changes(officer: Client) -> None:
    get_user_model().objects.create_user("nurul.h", first_name="Nurul", last_name="Huda")
    assert found(officer, "huda nurul") == {"Changes by a person": ["Nurul Huda"]}
    assert found(officer, "nurul.h") == {"Exact match": ["Nurul Huda"]}
    page = officer.get(URL, {"q": "nurul.h"}).content.decode()
    assert "/admin/taxpayers/change/?q=nurul.h" in page
    assert "nurul.h · Changes by a person" in page


def test_who_is_only_in_the_history_is_found_by_the_exact_name(officer: Client) -> None:
    Change.objects.create(
        by="operator (manage.py)", action=actions.BLOCK_SYSTEM_USER.name, label="x"
    )
    assert found(officer, "operator (manage.py)") == {"Exact match": ["operator (manage.py)"]}


def test_a_kind_that_a_role_may_not_see_is_not_searched(shop: Taxpayer) -> None:
    get_user_model().objects.create_user("clerk", first_name="Kedai")
    assert "Changes by a person" in found(staff_client("auditor", "ravi"), "kedai")
    assert list(found(staff_client("viewer"), "kedai")) == ["Taxpayers"]


def test_who_has_no_role_finds_nothing(shop: Taxpayer, erp: Erp) -> None:
    reference = erp.login()["correlationId"]
    user = get_user_model().objects.create_user("newcomer", is_staff=True)
    client = signed_in(with_totp(user))
    for term in ("kedai", shop.tin, erp.client_id, reference, "192.0.2.7", "newcomer"):
        assert found(client, term) == {}, term


def test_nobody_searches_without_signing_in() -> None:
    for client in (Client(), Client(enforce_csrf_checks=True)):
        assert client.get(URL, {"q": "kedai"}).status_code == 302


def test_a_plain_form_leads_to_an_address_that_can_be_sent_to_a_colleague(officer: Client) -> None:
    response = officer.post(URL, {"q": " kedai   runcit "})
    assert (response.status_code, response["Location"]) == (302, f"{URL}?q=kedai+runcit")
    assert "Kedai" not in text_of(officer.get(URL))


def test_the_script_gets_the_results_without_the_frame(officer: Client, shop: Taxpayer) -> None:
    page = officer.post(URL, {"q": "runcit"}, headers=AJAX).content.decode()
    assert "<html" not in page
    assert shop.name in page
    assert 'data-status="1 result"' in page


@pytest.mark.parametrize(
    "text", ["{secret}", "my secret: {secret}.", "CLIENT_SECRET={secret_upper}"]
)
def test_a_pasted_secret_is_neither_searched_nor_shown_nor_put_into_an_address(
    text: str, officer: Client
) -> None:
    secret = new_client_secret("test")
    typed = text.format(secret=secret, secret_upper=secret.upper())
    response: Any = officer.post(URL, {"q": typed})
    assert response.status_code == 200  # no redirect to an address with it
    assert "found" not in response.context
    page = response.content.decode()
    assert "Treat it as compromised" in page
    assert secret not in page
    assert secret[-10:] not in page


def test_the_secret_of_a_registered_client_finds_nothing(officer: Client) -> None:
    row: Any = CredentialFactory.create()
    page = officer.post(URL, {"q": row.clear}, headers=AJAX).content.decode()
    assert "Treat it as compromised" in page
    assert row.system_user.client_id not in page


def test_a_token_is_treated_as_a_secret(officer: Client) -> None:
    page = officer.post(URL, {"q": "Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln"}).content
    assert b"Treat it as compromised" in page


def test_a_long_group_leads_to_its_list(officer: Client) -> None:
    TaxpayerFactory.create_batch(8, name="Kedai Emas")
    page = officer.get(URL, {"q": "emas"})
    assert len(page.context["found"].groups[0].hits) == 6
    assert f"{reverse('admin:taxpayers_taxpayer_changelist')}?q=emas" in page.content.decode()


@pytest.mark.parametrize(
    "text",
    ["", "a", "\0", "%_\\'\"", "x" * 20_000, "9" * 5_000, "٣", "[" * 3_000, "\U0001f4a9" * 9],
)
def test_whatever_is_typed_gets_an_answer(text: str, officer: Client) -> None:
    assert officer.get(URL, {"q": text}).status_code == 200
    assert officer.post(URL, {"q": text}).status_code == 302
    assert officer.post(URL, {"q": text}, headers=AJAX).status_code == 200


def test_every_page_has_the_search_field(officer: Client, shop: Taxpayer) -> None:
    for path in ("/admin/", page_url(shop), "/admin/taxpayers/taxpayer/", URL, "/admin/nothing/"):
        assert f'action="{URL}"' in officer.get(path).content.decode(), path
