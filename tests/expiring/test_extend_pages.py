"""Extend, Set an earlier end, Revoke: of one record, and of several with a preview of each."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from identity.staff.framework.bulk_tasks import fingerprint
from identity.staff.framework.tasks import Preview
from taxpayers.models import Change, Credential, GrantedPermission, Intermediary, SystemUser
from taxpayers.moments import a_year_after
from taxpayers.services import Author, ServiceError, end_earlier, extend
from taxpayers.services.ends import a_year_longer, end_of
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
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

# The model, the role that extends its records, how one is made, and the field of its end.
KINDS: dict[str, tuple[type[Model], str, Any, str]] = {
    "system_user": (SystemUser, "security officer", make.system_user, "expires_at"),
    "intermediary": (Intermediary, "registrar", make.intermediary, "active_until"),
    "permission": (
        *(GrantedPermission, "registrar"),
        *(partial(make.permission, valid_from=AT - 99 * DAY), "valid_until"),
    ),
}


def new(kind: str, end: datetime | None) -> Any:
    *_, make_one, field = KINDS[kind]
    return make_one(**{field: end})


def as_stored(record: Any) -> datetime | None:
    record.refresh_from_db()
    return end_of(record)


@pytest.mark.parametrize("kind", KINDS)
def test_one_year_more_is_proposed_and_an_earlier_day_has_a_task_of_its_own(kind: str) -> None:
    client, record = staff_client(KINDS[kind][1]), new(kind, END)
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
    model, role, *_ = KINDS[kind]
    client = staff_client(role)
    records = [new(kind, END), new(kind, last_moment(2097, 2, 28))]
    shown = text_of(act_on(client, model, f"extend_{kind}", records))
    assert "31 May 2098, 23:59 31 May 2099, 23:59 + 1 year from the old end" in shown
    assert "28 Feb 2097, 23:59 28 Feb 2098, 23:59 + 1 year from the old end" in shown
    form = {"length": "year", "reason": "renewed", "confirmed": "1"}
    done = act_on(client, model, f"extend_{kind}", records, **form)
    assert "2 done." in text_of(done)
    assert [as_stored(record) for record in records] == [
        last_moment(2099, 5, 31),
        last_moment(2098, 2, 28),
    ]
    assert Change.objects.values("task_id").distinct().count() == 1


def test_rows_that_would_be_shortened_are_refused_by_name_and_the_others_extended(
    officer: Client,
) -> None:
    sooner, later, endless = (
        make.system_user(expires_at=end, name=name)
        for end, name in ((END, "Sooner"), (last_moment(2099, 9, 9), "Later"), (None, "Endless"))
    )
    form = {"length": "day", "expires": "2098-12-31", "reason": "renewed"}
    users = [sooner, later, endless]
    shown = text_of(act_on(officer, SystemUser, "extend_system_user", users, **form))
    assert "3 selected: 1 changes, 2 stay as they are" in shown
    why = "It ends 9 Sep 2099, 23:59, and 31 Dec 2098, 23:59 is not later."
    assert f"Not changed {why}" in shown
    assert "Not changed It has no end date." in shown
    done = act_on(officer, SystemUser, "extend_system_user", users, **form, confirmed="1")
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


def test_of_several_only_the_secrets_that_are_not_in_use_are_revoked(officer: Client) -> None:
    at = timezone.now()
    old = make.credential(created_at=at - 50 * DAY, last_used_at=at - 20 * DAY)
    user = old.system_user
    new = make.credential(system_user=user, slot=2, created_at=at - 19 * DAY, last_used_at=at)
    only = make.credential(last_used_at=at)
    users = [user, only.system_user]
    every = act_on(officer, SystemUser, "revoke_secrets", users, which="every")
    assert f"In use: secret {new}." in text_of(every)
    unclear = act_on(officer, SystemUser, "revoke_secrets", users, confirmed="1", reason="x")
    assert "This field is required." in errors_of(unclear)
    assert live() == {old, new, only}
    shown = text_of(act_on(officer, SystemUser, "revoke_secrets", users))
    assert f"Revoked: secret {old}. Still valid: secret {new}. Last login:" in shown
    assert "Not changed None of them is safe to revoke." in shown
    form = {"confirmed": "1", "which": "unused", "reason": "rotation is done"}
    done = text_of(act_on(officer, SystemUser, "revoke_secrets", users, **form))
    assert "1 done. 1 was not changed." in done
    assert live() == {new, only}


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


LATER = AT + 10 * DAY
WHY: dict[str, Any] = {"reason": "new contract", "by": Author("alice"), "at": AT}

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@EVERY_KIND
@pytest.mark.parametrize(
    ("change", "end", "until"),
    [
        *((extend, LATER, until) for until in (LATER + DAY, None)),
        *((end_earlier, end, AT + DAY) for end in (LATER, None)),
    ],
)
def test_to_extend_sets_a_later_end_or_none_and_the_other_an_earlier_one(
    kind: str, change: Any, end: datetime | None, until: datetime | None
) -> None:
    record = new(kind, end)
    change(record=record, until=until, **WHY)
    assert as_stored(record) == until
    assert Change.objects.get().reason == "new contract"


@EVERY_KIND
@pytest.mark.parametrize(
    ("change", "end", "until", "refusal"),
    [
        *((extend, LATER, until, "is not later") for until in (LATER, LATER - DAY, AT - DAY)),
        (extend, None, LATER, "It has no end date"),
        (extend, AT - 9 * DAY, AT - DAY, "in the past"),
        *((end_earlier, LATER, until, "is not earlier") for until in (LATER, LATER + DAY)),
        (end_earlier, LATER, AT - DAY, "in the past"),
        (end_earlier, AT - DAY, AT - 2 * DAY, "has already ended"),
    ],
)
def test_neither_changes_an_end_in_the_wrong_direction_or_into_the_past(
    kind: str, change: Any, end: datetime | None, until: datetime, refusal: str
) -> None:
    record = new(kind, end)
    with pytest.raises(ServiceError, match=refusal):
        change(record=record, until=until, **WHY)
    assert as_stored(record) == end
    assert not Change.objects.exists()


@pytest.mark.parametrize("kind", ["system_user", "intermediary"])
def test_what_has_ended_goes_on_until_its_new_end(kind: str) -> None:
    record = new(kind, AT - DAY)
    extend(record=record, until=LATER, **WHY)
    assert as_stored(record) == LATER


def test_a_permission_that_has_ended_is_granted_anew_and_its_own_dates_stay() -> None:
    old = new("permission", AT - DAY)
    anew = extend(record=old, until=LATER, **WHY)
    assert isinstance(anew, GrantedPermission)
    assert as_stored(old) == AT - DAY  # between then and now it was not in force
    assert anew.pk != old.pk
    assert (anew.valid_from, anew.valid_until) == (AT, LATER)
    assert (anew.taxpayer, anew.intermediary) == (old.taxpayer, old.intermediary)
    assert set(anew.codes.all()) == set(old.codes.all())
    assert Change.objects.get().reason == "new contract"


def test_a_revoked_permission_neither_goes_on_nor_ends_again() -> None:
    record = make.permission(valid_from=AT - DAY, valid_until=LATER, revoked_at=AT - DAY)
    with pytest.raises(ServiceError, match="It is revoked"):
        extend(record=record, until=LATER + DAY, **WHY)
    with pytest.raises(ServiceError, match="already revoked"):
        end_earlier(record=record, until=AT + DAY, **WHY)


def test_a_permission_does_not_end_before_it_begins() -> None:
    record = make.permission(valid_from=AT + 5 * DAY, valid_until=LATER)
    with pytest.raises(ServiceError, match="It begins") as refused:
        end_earlier(record=record, until=AT + 5 * DAY, **WHY)
    assert (refused.value.code, refused.value.fields) == ("wrong_end", ("until",))


def test_the_role_of_an_intermediary_that_is_not_active_stays_so() -> None:
    record = make.intermediary(active_until=LATER, is_active=False)
    extend(record=record, until=LATER + DAY, **WHY)
    record.refresh_from_db()
    assert not record.is_active


def test_a_year_longer_counts_from_the_end_or_from_today_if_that_has_passed() -> None:
    last = datetime(2027, 3, 11, 15, 59, 59, 999999, tzinfo=UTC)  # in Kuala Lumpur
    assert a_year_longer(new("system_user", LATER), AT) == last
    today = datetime(2027, 3, 1, 15, 59, 59, 999999, tzinfo=UTC)
    assert a_year_longer(new("system_user", AT - 99 * DAY), AT) == today
    assert a_year_longer(new("system_user", None), AT) is None


@pytest.mark.parametrize(
    ("day", "later"),
    [
        (datetime(2028, 2, 29, 1, tzinfo=UTC), datetime(2029, 2, 28, 15, 59, 59, 999999, UTC)),
        (datetime(2027, 2, 28, 1, tzinfo=UTC), datetime(2028, 2, 28, 15, 59, 59, 999999, UTC)),
        (datetime(2026, 12, 31, 17, tzinfo=UTC), datetime(2028, 1, 1, 15, 59, 59, 999999, UTC)),
        (datetime(9999, 12, 31, 1, tzinfo=UTC), datetime(9999, 12, 31, 15, 59, 59, 999999, UTC)),
    ],
)
def test_a_year_after_is_the_same_day_in_the_authoritys_time_zone(
    day: datetime, later: datetime
) -> None:
    assert a_year_after(day) == later
