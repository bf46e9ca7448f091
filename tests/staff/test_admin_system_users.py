"""Taxpayers, permissions and system users on the staff pages: states, forms and their errors."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from identity.staff.expiring.extend_tasks import ExtendSystemUser
from identity.staff.framework.changes import _display
from identity.staff.framework.records import pages_of
from identity.staff.logins import impact
from taxpayers.models import Change, GrantedPermission, SystemUser, Taxpayer
from taxpayers.services import Author, ServiceError, change_system_user
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.management_clients import why_only_operators
from tests.support import make
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import why
from tests.support.staff import ADDRESS, errors_of, opened, page_url, task_url, text_of

pytestmark = pytest.mark.django_db


def test_only_on_behalf_is_offered_where_the_taxpayer_is_an_intermediary(officer: Client) -> None:
    url = task_url(SystemUser, "issue_credentials")
    role = make.intermediary()
    for taxpayer, is_offered in ((role.taxpayer, True), (make.taxpayer(), False)):
        form = officer.get(url, {"taxpayer": str(taxpayer.identifier)}).context["form"]
        assert ("only_on_behalf" in form.fields) == is_offered
    assert "only_on_behalf" not in officer.get(url).context["form"].fields
    wrong = {"taxpayer": make.taxpayer().tin, "name": "x", "only_on_behalf": "on"}
    wrong |= {"reason": "new system", "method": "client_secret"}
    response = officer.post(url, wrong | {"scopes": ["InvoicingAPI"], "logins_per_minute": "12"})
    assert "is not an intermediary" in errors_of(response)


def test_of_a_client_of_the_management_api_no_form_gives_access(officer: Client) -> None:
    client = make.system_user(scopes="RegistryAPI:read")
    for task in ("change_system_user", "rotate_secret"):
        page = officer.get(task_url(client, task), follow=True)
        assert page.redirect_chain == [(page_url(client), 302)]
        assert why_only_operators(client) in text_of(page)
    assert officer.get(task_url(client, "block_system_user")).status_code == 200


def test_who_may_not_change_a_secret_sees_it_without_buttons(
    viewer: Client, officer: Client
) -> None:
    page = page_url(make.credential().system_user)
    shown = [client.get(page).context["secrets"][0]["buttons"] for client in (viewer, officer)]
    assert (shown[0], len(shown[1])) == ([], 3)


def test_who_unblocks_sees_why_it_is_blocked_and_what_works_again(
    officer: Client, erp: Erp
) -> None:
    user, leaked = erp.system_user, erp.system_user.credentials.get()
    block, unblock = (task_url(user, f"{task}_system_user") for task in ("block", "unblock"))
    assert "required" in errors_of(officer.post(block, {"reason": " "}))
    done = officer.post(block, {"reason": "secret seen in a ticket"})
    assert done["Location"] == page_url(user)
    assert erp.login().status_code == 400
    change = Change.objects.get()
    assert (change.action, change.by, change.address) == ("block_system_user", "kumar", ADDRESS)
    assert "badge-bad" in officer.get(task_url(SystemUser, "changelist")).content.decode()
    created = timezone.now() + timedelta(seconds=1)
    new = make.credential(system_user=user, slot=2, created_at=created)
    response = officer.get(unblock)
    for page in (text_of(response), text_of(officer.get(page_url(user)))):
        assert "Blocked by kumar since" in page
        assert "Reason: secret seen in a ticket" in page
    page, html = text_of(response), response.content.decode()
    assert "What was valid before the block works again." in page
    assert f"{task_url(user, 'revoke_secret')}?secret={leaked.pk}" in html
    assert f"{task_url(user, 'revoke_secret')}?secret={new.pk}" not in html  # made after it
    assert "After this it is: Active" in page
    user.credentials.filter(pk=leaked.pk).update(slot=None, revoked_at=timezone.now())
    assert "Nothing from before the block is valid" in text_of(officer.get(unblock))
    Taxpayer.objects.update(is_active=False)
    user.credentials.update(slot=None, revoked_at=timezone.now())
    page = text_of(officer.get(unblock))
    assert "After this it is: No valid secret Taxpayer not active" in page
    assert "It still cannot log in." in page


def test_the_page_to_block_shows_the_logins_that_it_would_have_refused(
    officer: Client, erp: Erp
) -> None:
    user = erp.system_user
    url = task_url(user, "block_system_user")
    role = make.intermediary(taxpayer=user.taxpayer)
    for revoked_at in (None, None, timezone.now()):
        make.permission(intermediary=role, revoked_at=revoked_at)
    asked = text_of(officer.get(url))
    assert "in the last 7 days None." in asked
    assert f"{user} · {user.taxpayer} · {user.client_id}" in asked
    assert "It acts for 2 taxpayers." in asked
    assert "Only a security officer can unblock it." in asked
    references = [erp.login()["correlationId"] for _ in range(7)]
    erp.login(client_secret="wrong")
    response = officer.get(url)
    page = text_of(response)
    assert "7 logins" in page
    assert "and 2 earlier logins" in page
    assert references[-1] in response.content.decode()


def test_the_page_to_revoke_shows_the_logins_that_no_other_permission_allows(
    intermediary: Erp, registrar: Client
) -> None:
    role = intermediary.role
    single = make.permission(intermediary=role)
    doubled = make.permission(intermediary=role, codes=["documents:view"])
    reduced = make.permission(intermediary=role, taxpayer=doubled.taxpayer)
    for permission in (single, single, doubled):
        on_behalf_of = str(permission.taxpayer.identifier)
        assert intermediary.login(on_behalf_of=on_behalf_of).status_code == 200
    asked = {
        single: "in the last 7 days 2 logins",
        doubled: "in the last 7 days None.",
        reduced: "1 more login would have got fewer permissions.",
    }
    for permission, shown in asked.items():
        assert shown in text_of(registrar.get(task_url(permission, "revoke_permission")))
    single.valid_from = timezone.now()  # after the logins
    single.save()
    assert "7 days None." in text_of(registrar.get(task_url(single, "revoke_permission")))


def test_the_page_to_deactivate_a_taxpayer_shows_the_logins_for_it_and_by_it(
    intermediary: Erp, registrar: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    taxpayer = intermediary.system_user.taxpayer
    permission = make.permission(intermediary=taxpayer.intermediary)
    represented = str(permission.taxpayer.identifier)
    references = [
        intermediary.login(**for_whom)["correlationId"]
        for for_whom in ({"on_behalf_of": represented}, {}, {"on_behalf_of": represented})
    ]
    intermediary.login(client_secret="wrong")
    new_erp(taxpayer=permission.taxpayer).login()  # another taxpayer's own
    found = impact.impact_of(taxpayer, timezone.now())
    assert [str(event.pk) for event in found.refused] == references[::-1]
    assert not found.has_more
    url = task_url(taxpayer, "deactivate_taxpayer")
    page = text_of(registrar.get(url))
    assert "in the last 7 days 3 logins" in page
    assert "on behalf of others" in page
    as_intermediary = registrar.get(task_url(taxpayer.intermediary, "deactivate_intermediary"))
    assert "in the last 7 days 2 logins" in text_of(as_intermediary)
    monkeypatch.setattr(impact, "MAX_LOGINS", 2)  # not all are read
    assert "in the last 7 days At least 2 logins" in text_of(registrar.get(url))


def test_a_form_that_was_opened_before_a_colleagues_change_does_not_undo_it(
    officer: Client,
) -> None:
    user = make.system_user(name="Old", logins_per_minute=12)
    url = task_url(user, "change_system_user")
    form = {"name": "New", "scopes": ["InvoicingAPI"], "logins_per_minute": "12", "reason": "typo"}
    sent = opened(officer, url) | form
    change_system_user(system_user=user, logins_per_minute=600, **why())
    refused = officer.post(url, sent)
    assert "this record was changed" in errors_of(refused)
    assert "Logins per minute: 600" in errors_of(refused)
    assert 'value="New"' in refused.content.decode()  # what was entered is not lost
    user.refresh_from_db()
    assert (user.name, user.logins_per_minute) == ("Old", 600)

    seen = {"original": refused.context["form"]["original"].value()}
    officer.post(url, form | seen)  # submitted again, to keep the entered values
    user.refresh_from_db()
    assert (user.name, user.logins_per_minute) == ("New", 12)
    assert officer.post(url, form | seen).status_code == 302  # submitted twice, nothing is undone
    for name in form:
        left_out = {other: value for other, value in form.items() if other != name}
        assert "required" in errors_of(officer.post(url, left_out | seen))


# The task, what is entered, and what a colleague has changed meanwhile.
OUTDATED: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "rename_taxpayer": (make.taxpayer, {"name": "Mine"}, {"name": "Theirs"}, "Name: Theirs"),
    "end_system_user_earlier": (
        make.system_user,
        {"expires": "2098-01-01"},
        {"expires_at": datetime(2099, 1, 1, 4, tzinfo=UTC)},
        "New last day: 1 Jan 2099, 12:00",
    ),
}


@pytest.mark.parametrize("task", OUTDATED)
def test_an_outdated_form_undoes_nothing(task: str, boss: Client) -> None:
    new, entered, changed, says = OUTDATED[task]
    record = new()
    url, rows = task_url(record, task), type(record)._default_manager
    sent = opened(boss, url) | entered | {"reason": "typo"}
    rows.update(**changed)
    assert says in errors_of(boss.post(url, sent))
    without = {name: value for name, value in sent.items() if name != "original"}
    for outdated in (without, without | {"original": "["}, without | {"original": "1"}):
        assert "this record was changed" in errors_of(boss.post(url, outdated))
    assert rows.filter(**changed).count() == 1


def test_a_change_between_reading_and_locking_is_not_undone() -> None:
    as_loaded = make.system_user(expires_at=None)
    data = {"original": '{"expires": null}', "expires": timezone.now(), "reason": "x"}
    SystemUser.objects.update(expires_at=timezone.now() + timedelta(days=1))
    task = ExtendSystemUser(pages_of(SystemUser))
    with pytest.raises(ServiceError, match="this record was changed"):
        task.perform(as_loaded, data, by=Author("aminah"), at=timezone.now())


ZONE = ZoneInfo("Asia/Kuala_Lumpur")
REGISTER = task_url(Taxpayer, "register_taxpayer")
GRANT = task_url(GrantedPermission, "grant_permission")


def test_the_page_of_a_taxpayer_shows_who_logs_in_and_who_acts_for_it(registrar: Client) -> None:
    granted = make.permission()
    row = granted.taxpayer
    user = make.system_user(taxpayer=row, name="Shop till")
    response = registrar.get(page_url(row))
    page = text_of(response)
    for shown in (row.name, row.tin, "Shop till", user.client_id, "Valid", SUBMIT):
        assert shown in page
    assert str(granted.intermediary) in page
    make.system_user(taxpayer=granted.intermediary.taxpayer, name="Hub")
    assert "Hub" in text_of(registrar.get(page_url(granted.intermediary)))
    buttons = " ".join(button.url for button in response.context["buttons"])
    for task in ("register_intermediary", "grant_permission"):
        assert f"{task}/?taxpayer={row.tin}" in buttons


def test_a_permission_is_granted_from_day_to_day(registrar: Client) -> None:
    taxpayer, role = make.taxpayer(), make.intermediary()
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
    valid = make.permission(valid_from=now - timedelta(days=9))
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
        ({"valid_until": "2020-01-01"}, "Choose a later date"),
    ],
)
def test_an_invalid_permission_shows_the_error_at_its_field(
    wrong: dict[str, Any], error: str, registrar: Client
) -> None:
    taxpayer, role = make.taxpayer(), make.intermediary()
    form = {"taxpayer": taxpayer.tin, "intermediary": role.taxpayer.tin, "codes": [SUBMIT]} | wrong
    form["intermediary"] = form["intermediary"].format(taxpayer=taxpayer.tin)
    page = registrar.post(GRANT, form)
    assert error in errors_of(page)
    assert set(page.context["form"].errors) <= set(wrong)
    assert not GrantedPermission.objects.exists()


def test_the_history_shows_before_and_after(registrar: Client) -> None:
    url = task_url(make.taxpayer(name="Before"), "rename_taxpayer")
    registrar.post(url, opened(registrar, url) | {"name": "After", "reason": "new register"})
    page = text_of(registrar.get(page_url(Change.objects.latest("pk"))))
    for shown in ("Renamed the taxpayer", "nurul", ADDRESS, "new register", "Before → After"):
        assert shown in page
    assert ">1 Feb 2026, 00:00<" in _display("2026-01-31T16:00:00+00:00")


TIN = "C77000999"


def sent(client: Client, **values: str) -> Any:
    return client.post(REGISTER, {"identifier": TIN, "name": "Kedai Runcit Ahmad"} | values)


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
    assert opened(registrar, REGISTER)["shown_for"] in (None, "")
    unlike = sent(registrar, identifier="C77000888", name="Kilang Papan Jaya")
    assert unlike.status_code == 302
    existing = make.taxpayer(name="KEDAI RUNCIT AHMAD SDN BHD", is_active=False)
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
