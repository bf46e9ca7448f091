"""Extend, Set an earlier end, Revoke: of one record, and of several with a preview of each."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from identity.staff.framework.bulk_tasks import fingerprint
from identity.staff.framework.tasks import Preview
from taxpayers.models import Change, Credential, GrantedPermission, Intermediary, SystemUser
from taxpayers.services.ends import end_of
from tests.staff.test_lists import act_on, button_of
from tests.support import make
from tests.support.erp import new_erp
from tests.support.staff import (
    errors_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)

pytestmark = pytest.mark.django_db

ZONE = ZoneInfo("Asia/Kuala_Lumpur")
DAY = timedelta(days=1)


def last_moment(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 23, 59, 59, 999999, ZONE)


END = last_moment(2098, 5, 31)

# The role that extends it, and a new record with that end.
KINDS: dict[str, tuple[str, Any]] = {
    "system_user": ("security officer", lambda end: make.system_user(expires_at=end)),
    "intermediary": ("registrar", lambda end: make.intermediary(active_until=end)),
    "permission": (
        "registrar",
        lambda end: make.permission(valid_from=timezone.now() - 99 * DAY, valid_until=end),
    ),
}
MODELS = {"system_user": SystemUser, "intermediary": Intermediary, "permission": GrantedPermission}


def as_stored(record: Any) -> datetime | None:
    record.refresh_from_db()
    return end_of(record)


@pytest.mark.parametrize("kind", KINDS)
def test_one_year_more_is_proposed_and_an_earlier_day_has_a_task_of_its_own(kind: str) -> None:
    role, new = KINDS[kind]
    client, record = staff_client(role), new(END)
    extend, earlier = task_url(record, f"extend_{kind}"), task_url(record, f"end_{kind}_earlier")
    assert "Extend" in text_of(client.get(page_url(record)))
    page = client.get(extend)
    text = text_of(page)
    assert "Last moment now: 31 May 2098, 23:59 ." in text
    assert "Proposed: 31 May 2099, 23:59, + 1 year from the old end." in text
    assert page.context["form"].initial["expires"].isoformat() == "2099-05-31"
    entered = {"expires": "2098-01-31", "reason": "moved"}
    refused = errors_of(client.post(extend, opened(client, extend) | entered))
    assert "It ends 31 May 2098, 23:59, and 31 Jan 2098, 23:59 is not later." in refused
    assert "use “Set an earlier end”" in refused
    sent = opened(client, extend) | {"expires": "2099-05-31", "reason": "renewed"}
    client.post(extend, sent)
    assert as_stored(record) == last_moment(2099, 5, 31)
    assert "required" in errors_of(client.post(earlier, opened(client, earlier) | {"reason": "x"}))
    client.post(earlier, opened(client, earlier) | entered)
    assert as_stored(record) == last_moment(2098, 1, 31)


def test_what_has_passed_is_extended_from_today_and_what_has_no_end_not(officer: Client) -> None:
    record = make.system_user(expires_at=timezone.now() - 9 * DAY)
    url = task_url(record, "extend_system_user")
    page = officer.get(url)
    assert "from today, because the old end has passed" in text_of(page)
    today = timezone.localtime().date()
    assert page.context["form"].initial["expires"].year == today.year + 1
    SystemUser.objects.update(expires_at=None)
    assert "To give it one, use “Set an earlier end”." in text_of(officer.get(url, follow=True))
    assert "Set an earlier end" in text_of(officer.get(page_url(record)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_preview_of_several_shows_old_and_new_of_each(kind: str) -> None:
    role, new = KINDS[kind]
    client = staff_client(role)
    records = [new(END), new(last_moment(2097, 2, 28))]
    shown = text_of(act_on(client, MODELS[kind], f"extend_{kind}", records))
    assert "31 May 2098, 23:59 31 May 2099, 23:59 + 1 year from the old end" in shown
    assert "28 Feb 2097, 23:59 28 Feb 2098, 23:59 + 1 year from the old end" in shown
    form = {"length": "year", "reason": "renewed", "confirmed": "1"}
    done = act_on(client, MODELS[kind], f"extend_{kind}", records, **form)
    assert "2 done." in text_of(done)
    assert [as_stored(record) for record in records] == [
        last_moment(2099, 5, 31),
        last_moment(2098, 2, 28),
    ]
    assert Change.objects.values("task_id").distinct().count() == 1


def test_rows_that_would_be_shortened_are_refused_by_name_and_the_others_extended() -> None:
    client = staff_client("security officer")
    sooner, later, endless = (
        make.system_user(expires_at=end, name=name)
        for end, name in ((END, "Sooner"), (last_moment(2099, 9, 9), "Later"), (None, "Endless"))
    )
    form = {"length": "day", "expires": "2098-12-31", "reason": "renewed"}
    users = [sooner, later, endless]
    shown = text_of(act_on(client, SystemUser, "extend_system_user", users, **form))
    assert "3 selected: 1 changes, 2 stay as they are" in shown
    why = "It ends 9 Sep 2099, 23:59, and 31 Dec 2098, 23:59 is not later."
    assert f"Not changed {why}" in shown
    assert "Not changed It has no end date." in shown
    done = act_on(client, SystemUser, "extend_system_user", users, **form, confirmed="1")
    assert "1 done. 2 were not changed." in text_of(done)
    ends = [as_stored(user) for user in users]
    assert ends == [last_moment(2098, 12, 31), last_moment(2099, 9, 9), None]


def test_only_what_was_shown_is_done(officer: Client) -> None:
    user, url = make.system_user(expires_at=END), list_url(SystemUser)
    shown = act_on(officer, SystemUser, "extend_system_user", [user], reason="typed before")
    assert errors_of(shown) == ""  # before it is confirmed
    assert 'value="typed before"' in shown.content.decode()
    sent = button_of(shown) | {"length": "year", "expires": "", "reason": "renewed"}
    again = officer.post(url, sent | {"length": "day", "expires": "2100-01-01"})
    assert "The preview has changed." in errors_of(again)
    assert "1 Jan 2100" in text_of(again)
    SystemUser.objects.update(expires_at=last_moment(2097, 1, 1))  # by a colleague
    again = officer.post(url, sent)
    assert "The preview has changed." in errors_of(again)
    assert "1 Jan 2098" in text_of(again)
    assert not Change.objects.exists()
    assert "1 done" in text_of(officer.post(url, sent | button_of(again), follow=True))
    shown = [Preview(), Preview("a"), Preview(after="a"), Preview(refusal="a")]
    assert len({fingerprint([(user, one)]) for one in shown}) == 4


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"length": "day", "expires": ""}, "Choose the last day."),
        ({"length": "year", "expires": "2099-01-01"}, "You chose + 1 year."),
        ({"length": "day", "expires": "soon"}, "Enter a valid date."),
        ({"length": "month", "expires": ""}, "Select a valid choice."),
    ],
)
def test_a_choice_that_does_not_fit_its_day_changes_nothing(
    form: dict[str, str], error: str
) -> None:
    client, user = staff_client("security officer"), make.system_user(expires_at=END)
    sent = act_on(
        client, SystemUser, "extend_system_user", [user], **form, reason="x", confirmed="1"
    )
    assert error in errors_of(sent)
    assert as_stored(user) == END


def live() -> set[Credential]:
    return set(Credential.objects.filter(revoked_at=None))


def test_every_secret_of_several_is_revoked_and_none_can_log_in(officer: Client) -> None:
    leaked, other = new_erp(), new_erp()
    users = list(SystemUser.objects.filter(client_id=leaked.client_id))
    second = make.credential(system_user=users[0], slot=2)
    without = make.system_user()
    shown = text_of(act_on(officer, SystemUser, "revoke_secrets", [*users, without], which="every"))
    assert f"…{leaked.client_secret[-4:]}" in shown
    assert str(second) in shown
    assert "Nothing else is valid: it cannot log in before it gets a new one." in shown
    assert "Not changed It has no valid secret." in shown
    form = {"confirmed": "1", "which": "every", "reason": "leaked at the maker"}
    act_on(officer, SystemUser, "revoke_secrets", [*users, without], **form)
    assert [secret.system_user.client_id for secret in live()] == [other.client_id]
    changes = Change.objects.filter(reason="leaked at the maker")
    assert changes.count() == 2
    assert changes.values("task_id").distinct().count() == 1


@pytest.fixture
def rotated(db: None) -> tuple[SystemUser, Credential, Credential]:
    """A system user with a secret that is no longer used, and the one that is used instead."""
    at = timezone.now()
    old = make.credential(created_at=at - 50 * DAY, last_used_at=at - 20 * DAY)
    new = make.credential(
        system_user=old.system_user, slot=2, created_at=at - 19 * DAY, last_used_at=at
    )
    return SystemUser.objects.get(), old, new


def test_of_several_only_the_secrets_that_are_not_in_use_are_revoked(
    officer: Client, rotated: tuple[SystemUser, Credential, Credential]
) -> None:
    user, old, new = rotated
    only = make.credential(last_used_at=timezone.now())
    users = [user, only.system_user]
    page = act_on(officer, SystemUser, "revoke_secrets", users)
    shown = text_of(page)
    assert f"Revoked: secret {old}. Still valid: secret {new}. Last login:" in shown
    assert "Not changed None of them is safe to revoke." in shown
    form = {"confirmed": "1", "which": "unused", "reason": "rotation is done"}
    done = text_of(act_on(officer, SystemUser, "revoke_secrets", users, **form))
    assert "1 done. 1 was not changed." in done
    assert live() == {new, only}


def test_which_secrets_must_be_clear(
    officer: Client, rotated: tuple[SystemUser, Credential, Credential]
) -> None:
    form = {"confirmed": "1", "reason": "x"}
    page = act_on(officer, SystemUser, "revoke_secrets", [rotated[0]], **form)
    assert "This field is required." in errors_of(page)
    shown = text_of(act_on(officer, SystemUser, "revoke_secrets", [rotated[0]], which="every"))
    assert "Nothing else is valid: it cannot log in before it gets a new one." in shown
    assert f"In use: secret {rotated[2]}." in shown
    assert live() == set(rotated[1:])


def test_several_permissions_are_revoked(registrar: Client) -> None:
    *valid, over = [make.permission() for _ in range(3)]
    GrantedPermission.objects.filter(pk=over.pk).update(revoked_at=timezone.now())
    rows = [*valid, over]
    shown = text_of(act_on(registrar, GrantedPermission, "revoke_permission", rows))
    assert "Not changed It is already revoked." in shown
    form = {"confirmed": "1", "reason": "contract ended"}
    done = act_on(registrar, GrantedPermission, "revoke_permission", rows, **form)
    assert "2 done. 1 was not changed." in text_of(done)
    assert not GrantedPermission.objects.filter(revoked_at=None).exists()
