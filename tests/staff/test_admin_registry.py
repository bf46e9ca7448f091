"""Taxpayers, intermediaries and permissions on the staff pages: each task and its errors."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from taxpayers import actions
from taxpayers.models import Change, GrantedPermission, Intermediary, PermissionCode, Taxpayer
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import (
    ADDRESS,
    errors_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def registrar(db: None) -> Client:
    return staff_client("registrar", "siti")


def last_change() -> tuple[str, str, str | None, str]:
    row = Change.objects.latest("pk")
    return row.action, row.by, row.address, row.reason


def test_a_taxpayer_is_registered_and_its_page_is_shown(registrar: Client) -> None:
    url = task_url(Taxpayer, "register_taxpayer")
    response = registrar.post(url, {"identifier": " c200001:rob-00001 ", "name": "Kedai"})
    row = Taxpayer.objects.get()
    assert (row.tin, row.rob, row.name) == ("C200001", "ROB-00001", "Kedai")
    assert response["Location"] == page_url(row)
    assert last_change() == (actions.REGISTER_TAXPAYER.name, "siti", ADDRESS, "")
    assert "Kedai (C200001:ROB-00001) is registered." in text_of(registrar.get(page_url(row)))


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"identifier": "", "name": "Kedai"}, "required"),
        (
            {"identifier": "C-1", "name": "Kedai"},
            "'C-1' is not a valid identifier: the TIN must be",
        ),
        ({"identifier": "C12345:", "name": "Kedai"}, "there is no ROB number after the colon."),
        ({"identifier": "C100001", "name": "Another"}, "already registered under the name Known"),
        ({"identifier": "C200001", "name": "x" * 256}, "at most 255 characters"),
    ],
)
def test_an_invalid_registration_shows_the_error_in_the_form(
    form: dict[str, str], error: str, registrar: Client
) -> None:
    TaxpayerFactory.create(tin="C100001", name="Known")
    response = registrar.post(task_url(Taxpayer, "register_taxpayer"), form)
    assert response.status_code == 200
    assert error in errors_of(response)
    assert Taxpayer.objects.count() == 1


def test_a_taxpayer_is_renamed_deactivated_and_activated_with_a_reason(registrar: Client) -> None:
    row = TaxpayerFactory.create(name="Before")
    tasks = [
        ("rename_taxpayer", {"name": "After"}),
        ("deactivate_taxpayer", {}),
        ("activate_taxpayer", {}),
    ]
    for task, form in tasks:
        url = task_url(row, task)
        sent = opened(registrar, url) | form
        assert "required" in errors_of(registrar.post(url, sent))
        registrar.post(url, {**sent, "reason": "as asked"})
        assert last_change() == (task, "siti", ADDRESS, "as asked")
    row.refresh_from_db()
    assert (row.name, row.is_active) == ("After", True)


def test_a_task_that_is_not_possible_now_redirects_to_the_record(registrar: Client) -> None:
    row = TaxpayerFactory.create()
    response = registrar.get(task_url(row, "activate_taxpayer"), follow=True)
    assert response.redirect_chain == [(page_url(row), 302)]
    assert "It is already active." in text_of(response)


def test_the_page_of_a_taxpayer_shows_who_logs_in_and_who_acts_for_it(registrar: Client) -> None:
    granted = GrantedPermissionFactory.create()
    row = granted.taxpayer
    user = SystemUserFactory.create(taxpayer=row, name="Shop till")
    page = text_of(registrar.get(page_url(row)))
    for shown in (row.name, row.tin, "Shop till", user.client_id, "Valid", SUBMIT):
        assert shown in page
    assert str(granted.intermediary) in page
    buttons = [b.url for b in registrar.get(page_url(row)).context["buttons"]]
    assert any(f"register_intermediary/?taxpayer={row.tin}" in url for url in buttons)
    assert any(f"grant_permission/?taxpayer={row.tin}" in url for url in buttons)


def test_pages_take_a_bounded_number_of_queries(
    registrar: Client, django_assert_max_num_queries: object
) -> None:
    role = IntermediaryFactory.create()
    for _ in range(30):
        GrantedPermissionFactory.create(intermediary=role)
        SystemUserFactory.create(taxpayer=role.taxpayer)
        GrantedPermissionFactory.create(taxpayer=role.taxpayer)
    for record in (role, role.taxpayer, GrantedPermission.objects.latest("pk")):
        with django_assert_max_num_queries(16):  # type: ignore[operator]
            assert registrar.get(page_url(record)).status_code == 200


def test_a_taxpayer_becomes_an_intermediary_until_the_end_of_a_day(registrar: Client) -> None:
    row = TaxpayerFactory.create()
    url = task_url(Intermediary, "register_intermediary")
    form = {"taxpayer": str(row.identifier), "until": "2099-12-31"}
    response = registrar.post(url, form)
    role = Intermediary.objects.get()
    assert response["Location"] == page_url(role)
    end = datetime(2099, 12, 31, 23, 59, 59, 999999, ZoneInfo("Asia/Kuala_Lumpur"))
    assert role.active_until == end.astimezone(UTC)


def test_the_role_of_an_intermediary_is_changed_with_a_reason(registrar: Client) -> None:
    role = IntermediaryFactory.create()
    url = task_url(role, "change_intermediary")
    sent = opened(registrar, url)
    assert "required" in errors_of(registrar.post(url, sent))
    registrar.post(url, sent | {"reason": "contract ended"})
    role.refresh_from_db()
    assert not role.is_active
    assert last_change() == (actions.CHANGE_INTERMEDIARY.name, "siti", ADDRESS, "contract ended")
    assert "Not active" in text_of(registrar.get(page_url(role)))


def test_an_outdated_form_restores_neither_a_role_nor_a_name(registrar: Client) -> None:
    role = IntermediaryFactory.create()
    changing, naming = (
        task_url(role, "change_intermediary"),
        task_url(role.taxpayer, "rename_taxpayer"),
    )
    form = {"is_active": "on", "until": "2099-12-31", "reason": "longer"}
    sent = opened(registrar, changing) | form
    Intermediary.objects.update(is_active=False)
    assert "It is now: no" in errors_of(registrar.post(changing, sent))
    assert not Intermediary.objects.get().is_active

    sent = opened(registrar, naming) | {"name": "Mine", "reason": "typo"}
    Taxpayer.objects.update(name="Theirs")
    assert "It is now: Theirs" in errors_of(registrar.post(naming, sent))
    assert Taxpayer.objects.get().name == "Theirs"


def grant(client: Client, **form: object) -> object:
    return client.post(task_url(GrantedPermission, "grant_permission"), form)


def test_a_permission_is_granted_from_day_to_day(registrar: Client) -> None:
    taxpayer, role = TaxpayerFactory.create(), IntermediaryFactory.create()
    grant(
        registrar,
        taxpayer=taxpayer.tin,
        intermediary=role.taxpayer.tin.lower(),
        codes=[SUBMIT, VIEW],
        valid_from="2099-01-01",
        valid_until="2099-12-31",
    )
    row = GrantedPermission.objects.get()
    zone = ZoneInfo("Asia/Kuala_Lumpur")
    assert (row.taxpayer, row.intermediary) == (taxpayer, role)
    assert row.valid_from == datetime(2099, 1, 1, tzinfo=zone)
    assert row.valid_until == datetime(2099, 12, 31, 23, 59, 59, 999999, zone)
    assert sorted(row.codes.values_list("pk", flat=True)) == [SUBMIT, VIEW]
    for page in (page_url(row), page_url(taxpayer), page_url(role)):
        assert "Not yet valid" in text_of(registrar.get(page))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"taxpayer": "C999999"}, "There is no taxpayer C999999"),
        ({"intermediary": "{taxpayer}"}, "is not an intermediary"),
        ({"codes": []}, "required"),
        ({"codes": ["documents:eat"]}, "not one of the available choices"),
        ({"valid_until": "2001-01-01"}, "in the past"),
        ({"valid_from": "2099-02-01", "valid_until": "2099-01-01"}, "before it begins"),
        ({"valid_from": "yesterday"}, "valid date"),
    ],
)
def test_an_invalid_permission_shows_the_error_in_the_form(
    wrong: dict[str, object], error: str, registrar: Client
) -> None:
    taxpayer, role = TaxpayerFactory.create(), IntermediaryFactory.create()
    right = {"taxpayer": taxpayer.tin, "intermediary": role.taxpayer.tin, "codes": [SUBMIT]}
    wrong = {
        k: v.format(taxpayer=taxpayer.tin) if isinstance(v, str) else v for k, v in wrong.items()
    }
    assert error in errors_of(grant(registrar, **{**right, **wrong}))
    assert not GrantedPermission.objects.exists()


def test_the_form_to_grant_starts_with_the_values_of_its_url(registrar: Client) -> None:
    url = task_url(GrantedPermission, "grant_permission")
    page = registrar.get(f"{url}?taxpayer=C100001&intermediary=C200002").content.decode()
    assert 'value="C100001"' in page
    assert 'value="C200002"' in page


def test_a_permission_is_revoked_with_a_reason(registrar: Client) -> None:
    row = GrantedPermissionFactory.create()
    url = task_url(row, "revoke_permission")
    assert "required" in errors_of(registrar.post(url, {"reason": "  "}))
    registrar.post(url, {"reason": "asked by letter"})
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert last_change() == (actions.REVOKE_PERMISSION.name, "siti", ADDRESS, "asked by letter")
    assert "Revoked" in text_of(registrar.get(page_url(row)))


def test_a_code_is_added_and_its_description_changed(registrar: Client) -> None:
    url = task_url(PermissionCode, "set_permission_code")
    registrar.post(url, {"code": "reports:download_all", "description": "Download"})
    row = PermissionCode.objects.get(pk="reports:download_all")
    page = registrar.get(page_url(row))
    assert "Download" in text_of(page)
    (button,) = page.context["buttons"]
    assert 'value="reports:download_all"' in registrar.get(button.url).content.decode()
    registrar.post(url, {"code": row.code, "description": "Download reports"})
    row.refresh_from_db()
    assert row.description == "Download reports"
    assert "Write the code as words" in errors_of(
        registrar.post(url, {"code": "Reports!", "description": "x"})
    )
    assert registrar.get(list_url(PermissionCode)).status_code == 200


def test_the_history_shows_before_and_after(registrar: Client) -> None:
    row = TaxpayerFactory.create(name="Before")
    url = task_url(row, "rename_taxpayer")
    registrar.post(url, opened(registrar, url) | {"name": "After", "reason": "new register"})
    page = text_of(registrar.get(page_url(Change.objects.latest("pk"))))
    for shown in ("Renamed the taxpayer", "siti", ADDRESS, "new register", "Before → After"):
        assert shown in page
    assert "Renamed the taxpayer" in text_of(registrar.get(list_url(Change)))
    assert "Renamed the taxpayer" in text_of(registrar.get(f"{list_url(Change)}?q={row.tin}"))
    assert "Renamed" in text_of(registrar.get(f"{list_url(Change)}?q=siti&period=1"))


def test_moments_are_local_with_utc_on_hover(registrar: Client) -> None:
    row = TaxpayerFactory.create(created_at=datetime(2026, 3, 1, 20, 5, 9, tzinfo=UTC))
    page = registrar.get(page_url(row)).content.decode()
    assert (
        '<time datetime="2026-03-01T20:05:09Z" title="2026-03-01 20:05:09 UTC">'
        "2 Mar 2026, 04:05</time>" in page
    )


def test_an_expired_permission_and_one_that_expires_soon_are_marked(registrar: Client) -> None:
    at = timezone.now()
    expired = GrantedPermissionFactory.create(valid_until=at - timedelta(minutes=1))
    expiring = GrantedPermissionFactory.create(valid_until=at + timedelta(days=3))
    assert "Expired" in text_of(registrar.get(page_url(expired)))
    assert " Valid Ends soon " in text_of(registrar.get(page_url(expiring)))
