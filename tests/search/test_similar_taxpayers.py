"""Who registers a taxpayer with a name like an existing one sees it before it is saved."""

from typing import Any

import pytest
from django.test import Client

from taxpayers.models import Taxpayer
from tests.support.factories import TaxpayerFactory
from tests.support.staff import errors_of, opened, page_url, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db
TIN = "C77000999"


@pytest.fixture
def registrar(db: None) -> Client:
    return staff_client("registrar")


def sent(client: Client, **values: str) -> Any:
    url = task_url(Taxpayer, "register_taxpayer")
    return client.post(url, {"identifier": TIN, "name": "Kedai Runcit Ahmad"} | values)


def test_similar_taxpayers_are_shown_and_nothing_is_saved_until_it_is_sent_again(
    registrar: Client,
) -> None:
    existing = TaxpayerFactory.create(name="KEDAI RUNCIT AHMAD SDN BHD", is_active=False)
    page = sent(registrar)
    assert "Nothing was saved yet" in errors_of(page)
    assert existing.name in text_of(page)
    assert "(not active)" in text_of(page)
    assert page_url(existing) in page.content.decode()
    assert not Taxpayer.objects.filter(tin=TIN).exists()
    hidden = page.context["form"]["shown_for"].value()
    assert sent(registrar, shown_for=hidden).status_code == 302
    assert Taxpayer.objects.get(tin=TIN).name == "Kedai Runcit Ahmad"


def test_another_name_is_compared_again(registrar: Client) -> None:
    TaxpayerFactory.create(name="Kedai Runcit Ahmad Sdn Bhd")
    page = sent(registrar, shown_for="Something else")
    assert "Nothing was saved yet" in errors_of(page)


def test_a_name_unlike_others_is_registered_at_once(registrar: Client) -> None:
    TaxpayerFactory.create(name="Kilang Papan Jaya Sdn Bhd")
    assert opened(registrar, task_url(Taxpayer, "register_taxpayer"))["shown_for"] in (None, "")
    assert sent(registrar).status_code == 302


def test_an_identifier_that_is_registered_is_named_as_before(registrar: Client) -> None:
    TaxpayerFactory.create(tin=TIN, name="Kedai Runcit Ahmad Sdn Bhd")
    assert "is already registered under the name" in errors_of(sent(registrar))
