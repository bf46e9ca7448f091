"""Extend, and Set an earlier end: of one record, and of several with a preview of each."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from identity.staff.framework.bulk_tasks import fingerprint
from identity.staff.framework.tasks import Preview
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser
from taxpayers.services.ends import end_of
from tests.staff.test_lists import act_on, button_of
from tests.support.factories import GrantedPermissionFactory, IntermediaryFactory, SystemUserFactory
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
    "system_user": ("security officer", lambda end: SystemUserFactory.create(expires_at=end)),
    "intermediary": ("registrar", lambda end: IntermediaryFactory.create(active_until=end)),
    "permission": (
        "registrar",
        lambda end: GrantedPermissionFactory.create(
            valid_from=timezone.now() - 99 * DAY, valid_until=end
        ),
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
    record = SystemUserFactory.create(expires_at=timezone.now() - 9 * DAY)
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
        SystemUserFactory.create(expires_at=end, name=name)
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
    user, url = SystemUserFactory.create(expires_at=END), list_url(SystemUser)
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
    client, user = staff_client("security officer"), SystemUserFactory.create(expires_at=END)
    sent = act_on(
        client, SystemUser, "extend_system_user", [user], **form, reason="x", confirmed="1"
    )
    assert error in errors_of(sent)
    assert as_stored(user) == END
