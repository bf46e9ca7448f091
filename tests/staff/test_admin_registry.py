"""Taxpayers, intermediaries and permissions on the staff pages: each form and its errors."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from taxpayers.models import Change, GrantedPermission, Taxpayer
from taxpayers.services.granted_permissions import codes_of
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import ADDRESS, errors_of, list_url, opened, page_url, task_url, text_of

pytestmark = pytest.mark.django_db
ZONE = ZoneInfo("Asia/Kuala_Lumpur")
REGISTER = task_url(Taxpayer, "register_taxpayer")
GRANT = task_url(GrantedPermission, "grant_permission")


def test_the_page_of_a_taxpayer_shows_who_logs_in_and_who_acts_for_it(registrar: Client) -> None:
    granted = GrantedPermissionFactory.create()
    row = granted.taxpayer
    user = SystemUserFactory.create(taxpayer=row, name="Shop till")
    response = registrar.get(page_url(row))
    page = text_of(response)
    for shown in (row.name, row.tin, "Shop till", user.client_id, "Valid", SUBMIT):
        assert shown in page
    assert str(granted.intermediary) in page
    SystemUserFactory.create(taxpayer=granted.intermediary.taxpayer, name="Hub")
    assert "Hub" in text_of(registrar.get(page_url(granted.intermediary)))
    buttons = " ".join(button.url for button in response.context["buttons"])
    for task in ("register_intermediary", "grant_permission"):
        assert f"{task}/?taxpayer={row.tin}" in buttons


def test_a_permission_is_granted_from_day_to_day(registrar: Client) -> None:
    taxpayer, role = TaxpayerFactory.create(), IntermediaryFactory.create()
    form = {"taxpayer": taxpayer.tin, "intermediary": role.taxpayer.tin.lower()}
    days = {"valid_from": "2099-01-01", "valid_until": "2099-12-31"}
    registrar.post(GRANT, {**form, "codes": [SUBMIT, VIEW], **days})
    row = GrantedPermission.objects.get()
    assert (row.taxpayer, row.intermediary) == (taxpayer, role)
    assert row.valid_from == datetime(2099, 1, 1, tzinfo=ZONE)
    assert row.valid_until == datetime(2099, 12, 31, 23, 59, 59, 999999, ZONE)
    assert sorted(row.codes.values_list("pk", flat=True)) == [SUBMIT, VIEW]
    for page in (page_url(row), page_url(taxpayer), page_url(role)):
        assert "Not yet valid" in text_of(registrar.get(page))


@pytest.mark.parametrize("ended", ["valid_until", "revoked_at"])
def test_an_ended_permission_is_granted_again_as_it_was(ended: str, registrar: Client) -> None:
    now = timezone.now()
    valid = GrantedPermissionFactory.create(valid_from=now - timedelta(days=9))
    assert "Grant again" not in text_of(registrar.get(page_url(valid)))
    GrantedPermission.objects.filter(pk=valid.pk).update(**{ended: now - timedelta(days=1)})
    buttons = registrar.get(page_url(valid)).context["buttons"]
    (again,) = (button.url for button in buttons if button.title == "Grant again")
    form = registrar.get(again).context["form"]
    registrar.post(
        GRANT, {name: form[name].value() for name in ("taxpayer", "intermediary", "codes")}
    )
    row = GrantedPermission.objects.exclude(pk=valid.pk).get()
    assert (row.taxpayer, row.intermediary) == (valid.taxpayer, valid.intermediary)
    assert codes_of(row) == codes_of(valid)
    assert row.valid_from > now


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"taxpayer": "C999999"}, "There is no taxpayer C999999"),
        ({"intermediary": "{taxpayer}"}, "is not an intermediary"),
        ({"codes": ["documents:eat"]}, "not one of the available choices"),
        ({"valid_from": "2099-02-01", "valid_until": "2099-01-01"}, "before it begins"),
        ({"valid_from": "yesterday"}, "valid date"),
    ],
)
def test_an_invalid_permission_shows_the_error_in_the_form(
    wrong: dict[str, Any], error: str, registrar: Client
) -> None:
    taxpayer, role = TaxpayerFactory.create(), IntermediaryFactory.create()
    form = {"taxpayer": taxpayer.tin, "intermediary": role.taxpayer.tin, "codes": [SUBMIT]} | wrong
    form["intermediary"] = form["intermediary"].format(taxpayer=taxpayer.tin)
    assert error in errors_of(registrar.post(GRANT, form))
    assert not GrantedPermission.objects.exists()


def test_the_history_shows_before_and_after(registrar: Client) -> None:
    row = TaxpayerFactory.create(name="Before")
    url = task_url(row, "rename_taxpayer")
    registrar.post(url, opened(registrar, url) | {"name": "After", "reason": "new register"})
    page = text_of(registrar.get(page_url(Change.objects.latest("pk"))))
    for shown in ("Renamed the taxpayer", "nurul", ADDRESS, "new register", "Before → After"):
        assert shown in page
    for query in ("", f"?q={row.tin}", "?q=nurul&period=1"):
        assert "Renamed the taxpayer" in text_of(
            registrar.get(list_url(Change) + query, follow=True)
        )


TIN = "C77000999"


def sent(client: Client, **values: str) -> Any:
    url = task_url(Taxpayer, "register_taxpayer")
    return client.post(url, {"identifier": TIN, "name": "Kedai Runcit Ahmad"} | values)


def test_a_tin_without_digits_is_asked_back(registrar: Client) -> None:
    page = sent(registrar, identifier="kedai")
    assert "KEDAI has no digits" in errors_of(page)
    assert not Taxpayer.objects.exists()
    hidden = page.context["form"]["shown_for"].value()
    assert sent(registrar, identifier="kedais", shown_for=hidden).status_code == 200
    assert sent(registrar, identifier="kedai", shown_for=hidden).status_code == 302


def test_similar_taxpayers_are_shown_and_nothing_is_saved_until_it_is_sent_again(
    registrar: Client,
) -> None:
    assert opened(registrar, task_url(Taxpayer, "register_taxpayer"))["shown_for"] in (None, "")
    unlike = sent(registrar, identifier="C77000888", name="Kilang Papan Jaya")
    assert unlike.status_code == 302
    existing = TaxpayerFactory.create(name="KEDAI RUNCIT AHMAD SDN BHD", is_active=False)
    assert "Nothing was saved yet" in errors_of(sent(registrar, shown_for="Something else"))
    page = sent(registrar)
    assert "Nothing was saved yet" in errors_of(page)
    assert existing.name in text_of(page)
    assert "(not active)" in text_of(page)
    assert page_url(existing) in page.content.decode()
    assert not Taxpayer.objects.filter(tin=TIN).exists()
    hidden = page.context["form"]["shown_for"].value()
    assert sent(registrar, shown_for=hidden).status_code == 302
    assert Taxpayer.objects.get(tin=TIN).name == "Kedai Runcit Ahmad"
    other = sent(registrar, name="Kedai Runcit Ahmad Sdn")  # the identifier is named as before
    assert "is already registered under the name" in errors_of(other)
