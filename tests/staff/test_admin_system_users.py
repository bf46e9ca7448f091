"""System users on the staff pages: their state, and each task with its confirmation page."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from identity.staff.expiring.extend_tasks import ExtendSystemUser
from identity.staff.framework.badges import is_safe_to_revoke
from identity.staff.logins import impact
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.services import Author, ServiceError, change_system_user
from tests.support.erp import Erp, new_erp
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    SystemUserFactory,
)
from tests.support.staff import (
    ADDRESS,
    errors_of,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer", "ravi")


def test_a_system_user_is_blocked_with_a_reason_and_its_login_refused(
    officer: Client, erp: Erp
) -> None:
    user = erp.system_user
    url = task_url(user, "block_system_user")
    assert "required" in errors_of(officer.post(url, {"reason": " "}))
    assert erp.login().status_code == 200
    response = officer.post(url, {"reason": "stolen laptop"})
    assert response["Location"] == page_url(user)
    assert erp.login().status_code == 400
    page = text_of(officer.get(page_url(user)))
    for shown in ("Blocked by ravi since", "Reason: stolen laptop", "System user blocked"):
        assert shown in page
    change = Change.objects.latest("pk")
    assert (change.action, change.by, change.address) == ("block_system_user", "ravi", ADDRESS)
    assert "It is already blocked." in text_of(officer.get(url, follow=True))

    officer.post(task_url(user, "unblock_system_user"), {"reason": "laptop found"})
    assert erp.login().status_code == 200
    assert "It is not blocked." in text_of(
        officer.get(task_url(user, "unblock_system_user"), follow=True)
    )


def test_the_page_to_unblock_says_why_it_is_blocked_and_which_secret_works_again(
    officer: Client, erp: Erp
) -> None:
    user, leaked = erp.system_user, erp.system_user.credentials.get()
    officer.post(task_url(user, "block_system_user"), {"reason": "secret seen in a ticket"})
    new = CredentialFactory.create(
        system_user=user, slot=2, created_at=timezone.now() + timedelta(seconds=1)
    )
    response = officer.get(task_url(user, "unblock_system_user"))
    page, html = text_of(response), response.content.decode()
    assert "Blocked by ravi since" in page
    assert "Reason: secret seen in a ticket" in page
    assert "What was valid before the block works again." in page
    assert f"{task_url(user, 'revoke_secret')}?secret={leaked.pk}" in html
    assert f"{task_url(user, 'revoke_secret')}?secret={new.pk}" not in html  # made after it
    assert "After this it is: Active" in page

    leaked.slot, leaked.revoked_at = None, timezone.now()
    leaked.save()
    response = officer.get(task_url(user, "unblock_system_user"))
    assert "Nothing from before the block is valid" in text_of(response)
    assert f'href="{task_url(user, "rotate_secret")}"' in response.content.decode()


def test_the_page_to_unblock_says_what_else_refuses_its_logins(officer: Client, erp: Erp) -> None:
    user = erp.system_user
    officer.post(task_url(user, "block_system_user"), {"reason": "x"})
    Taxpayer.objects.update(is_active=False)
    user.credentials.update(slot=None, revoked_at=timezone.now())
    page = text_of(officer.get(task_url(user, "unblock_system_user")))
    assert "After this it is: No valid secret Taxpayer not active" in page
    assert "It still cannot log in." in page


def test_the_page_to_block_shows_the_logins_that_it_would_have_refused(
    officer: Client, erp: Erp
) -> None:
    references = [erp.login()["correlationId"] for _ in range(7)]
    erp.login(client_secret="wrong")
    response = officer.get(task_url(erp.system_user, "block_system_user"))
    page = text_of(response)
    assert "7 logins" in page
    assert "and 2 earlier logins" in page
    assert references[-1] in response.content.decode()


def test_blocking_a_client_that_never_logged_in_would_have_refused_nothing(officer: Client) -> None:
    page = text_of(officer.get(task_url(SystemUserFactory.create(), "block_system_user")))
    assert "in the last 7 days None." in page


def test_the_page_to_revoke_shows_the_logins_that_no_other_permission_allows(
    intermediary: Erp,
) -> None:
    role = intermediary.system_user.taxpayer.intermediary
    alone = GrantedPermissionFactory.create(intermediary=role)
    doubled = GrantedPermissionFactory.create(intermediary=role, codes=["documents:view"])
    reduced = GrantedPermissionFactory.create(intermediary=role, taxpayer=doubled.taxpayer)
    for permission in (alone, alone, doubled):
        on_behalf_of = str(permission.taxpayer.identifier)
        assert intermediary.login(on_behalf_of=on_behalf_of).status_code == 200
    registrar = staff_client("registrar")
    asked = {
        alone: "in the last 7 days 2 logins",
        doubled: "in the last 7 days None.",
        reduced: "1 more login would have got fewer permissions.",
    }
    for permission, shown in asked.items():
        assert shown in text_of(registrar.get(task_url(permission, "revoke_permission")))


def test_the_page_to_deactivate_a_taxpayer_shows_its_logins(erp: Erp) -> None:
    erp.login()
    url = task_url(erp.system_user.taxpayer, "deactivate_taxpayer")
    assert "in the last 7 days 1 login" in text_of(staff_client("registrar").get(url))


def test_the_page_to_deactivate_an_intermediary_shows_its_logins_for_others(
    intermediary: Erp,
) -> None:
    taxpayer = intermediary.system_user.taxpayer
    permission = GrantedPermissionFactory.create(intermediary=taxpayer.intermediary)
    represented = str(permission.taxpayer.identifier)
    references = [
        intermediary.login(**for_whom)["correlationId"]
        for for_whom in ({"on_behalf_of": represented}, {}, {"on_behalf_of": represented})
    ]
    intermediary.login(client_secret="wrong")
    new_erp(taxpayer=permission.taxpayer).login()  # another taxpayer's own
    found = impact.impact_of_deactivating(taxpayer, timezone.now())
    assert [str(event.pk) for event in found.refused] == references[::-1]
    assert not found.has_more
    page = text_of(staff_client("registrar").get(task_url(taxpayer, "deactivate_taxpayer")))
    assert "in the last 7 days 3 logins" in page
    assert "on behalf of others" in page


def test_the_impact_of_deactivating_takes_two_queries_and_reads_a_bounded_number_of_logins(
    erp: Erp, django_assert_num_queries: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(impact, "MAX_LOGINS", 1)
    erp.login()
    erp.login()
    taxpayer = erp.system_user.taxpayer
    SystemUserFactory.create_batch(3, taxpayer=taxpayer)
    with django_assert_num_queries(2):  # type: ignore[operator]
        assert impact.impact_of_deactivating(taxpayer, timezone.now()).has_more
    page = text_of(staff_client("registrar").get(task_url(taxpayer, "deactivate_taxpayer")))
    assert "in the last 7 days At least 1 login" in page  # not all were read


def test_the_last_day_of_a_system_user_is_changed_or_removed(officer: Client) -> None:
    user = SystemUserFactory.create(expires_at=timezone.now() - timedelta(days=1))
    assert "Expired" in text_of(officer.get(page_url(user)))
    url = task_url(user, "extend_system_user")
    officer.post(url, opened(officer, url) | {"expires": "2099-12-31", "reason": "new contract"})
    user.refresh_from_db()
    zone = ZoneInfo("Asia/Kuala_Lumpur")
    assert user.expires_at == datetime(2099, 12, 31, 23, 59, 59, 999999, zone)
    assert 'value="2100-12-31"' in officer.get(url).content.decode()  # proposed: a year more
    as_opened = opened(officer, url)
    past = as_opened | {"expires": "2001-01-01", "reason": "x"}
    assert "is not later" in errors_of(officer.post(url, past))
    officer.post(url, as_opened | {"expires": "", "reason": "no end date"})
    user.refresh_from_db()
    assert user.expires_at is None


def test_name_scopes_and_limit_are_changed(officer: Client) -> None:
    user = SystemUserFactory.create(name="Old")
    url = task_url(user, "change_system_user")
    form = {"name": "New", "scopes": ["InvoicingAPI"], "logins_per_minute": "600", "reason": "hub"}
    officer.post(url, opened(officer, url) | form)
    user.refresh_from_db()
    assert (user.name, user.logins_per_minute) == ("New", 600)
    for wrong in form:
        left_out = {name: value for name, value in form.items() if name != wrong}
        assert "required" in errors_of(officer.post(url, left_out))


def test_a_form_that_was_opened_before_a_colleagues_change_does_not_undo_it(
    officer: Client,
) -> None:
    user = SystemUserFactory.create(name="Old", logins_per_minute=12)
    url = task_url(user, "change_system_user")
    form = {"name": "New", "scopes": ["InvoicingAPI"], "logins_per_minute": "12", "reason": "typo"}
    sent = opened(officer, url) | form
    change_system_user(
        system_user=user, logins_per_minute=600, reason="hub", by=Author("x"), at=timezone.now()
    )
    refused = officer.post(url, sent)
    assert "this record was changed" in errors_of(refused)
    assert refused.context["form"].errors["logins_per_minute"] == [
        "A colleague changed this. It is now: 600."
    ]
    assert 'value="New"' in refused.content.decode()  # what was entered is not lost
    user.refresh_from_db()
    assert (user.name, user.logins_per_minute) == ("Old", 600)

    seen = {"original": refused.context["form"]["original"].value()}
    officer.post(url, form | seen)  # submitted again, to keep the entered values
    user.refresh_from_db()
    assert (user.name, user.logins_per_minute) == ("New", 12)
    assert officer.post(url, form | seen).status_code == 302  # submitted twice, nothing is undone


def test_a_day_that_a_colleague_set_is_not_undone_by_an_outdated_form(officer: Client) -> None:
    user = SystemUserFactory.create(expires_at=None)
    url = task_url(user, "end_system_user_earlier")
    sent = opened(officer, url) | {"expires": "2098-01-01", "reason": "new contract"}
    end = datetime(2099, 1, 1, 4, tzinfo=UTC)
    SystemUser.objects.update(expires_at=end)
    assert "It is now: 1 Jan 2099, 12:00" in errors_of(officer.post(url, sent))
    without = {name: value for name, value in sent.items() if name != "original"}
    for outdated in (without, without | {"original": "["}, without | {"original": "1"}):
        assert "this record was changed" in errors_of(officer.post(url, outdated))
    assert SystemUser.objects.get().expires_at == end


def test_a_change_between_reading_and_locking_is_not_undone() -> None:
    as_loaded = SystemUserFactory.create(expires_at=None)
    data = {"original": {"expires": None}, "expires": timezone.now(), "reason": "x"}
    SystemUser.objects.update(expires_at=timezone.now() + timedelta(days=1))
    with pytest.raises(ServiceError, match="this record was changed"), transaction.atomic():
        ExtendSystemUser.form.values_for_service(as_loaded, data)


def test_the_page_shows_the_rate_against_the_limit(officer: Client) -> None:
    erp = new_erp(logins_per_minute=4)
    for _ in range(3):
        erp.login()
    page = text_of(officer.get(page_url(erp.system_user)))
    assert "Logins in the current minute 3 of 4" in page
    assert "Logins in the last hour 3" in page


def test_the_page_shows_recent_logins_with_their_reasons(officer: Client, erp: Erp) -> None:
    erp.login()
    erp.login(client_secret=new_erp().client_secret)
    erp.login(scope="unknown")
    page = text_of(officer.get(page_url(erp.system_user)))
    for shown in ("Token issued", "Wrong client ID or secret", "Scope not allowed"):
        assert shown in page


def test_the_page_takes_a_bounded_number_of_queries(
    officer: Client, django_assert_max_num_queries: object
) -> None:
    erp = new_erp()
    for slot in (2, *[None] * 20):
        CredentialFactory.create(system_user=erp.system_user, slot=slot)
    for _ in range(3):
        erp.login()
    with django_assert_max_num_queries(16):  # type: ignore[operator]
        officer.get(page_url(erp.system_user))
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        officer.get(task_url(erp.system_user, "block_system_user"))


@pytest.mark.parametrize(
    ("old_used_days_ago", "new_used_days_ago", "is_safe"),
    [
        (31, None, True),  # not used for thirty days
        (3, 1, True),  # the new one is in use, the old one no longer
        (1.5, 1, False),  # both within a day: perhaps two nodes that change over
        (1, 3, False),  # the old one was used after the new one
        (3, None, False),  # the new one is not in place yet
    ],
)
def test_an_old_secret_is_safe_to_revoke_once_nobody_uses_it(
    old_used_days_ago: float, new_used_days_ago: float | None, is_safe: bool
) -> None:
    at = timezone.now()
    user = SystemUserFactory.create()
    old = CredentialFactory.create(
        system_user=user,
        created_at=at - timedelta(days=90),
        last_used_at=at - timedelta(days=old_used_days_ago),
    )
    new = CredentialFactory.create(
        system_user=user,
        slot=2,
        created_at=at - timedelta(days=10),
        last_used_at=at - timedelta(days=new_used_days_ago) if new_used_days_ago else None,
    )
    assert is_safe_to_revoke(old, [old, new], at) is is_safe
    assert not is_safe_to_revoke(new, [old, new], at)


def test_a_blocked_system_user_is_marked_in_the_list(officer: Client) -> None:
    SystemUserFactory.create(blocked_at=timezone.now(), blocked_by="x", blocked_reason="y")
    page = officer.get(task_url(SystemUser, "changelist"))
    assert "badge-bad" in page.content.decode()
