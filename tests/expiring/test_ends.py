"""To extend never shortens, and to end earlier never extends (contract 4)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.models import Change, GrantedPermission
from taxpayers.moments import a_year_after
from taxpayers.services import Author, ServiceError, end_earlier, extend
from taxpayers.services.ends import a_year_longer, end_of
from tests.support.factories import GrantedPermissionFactory, IntermediaryFactory, SystemUserFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
END = AT + 10 * DAY
WHY: dict[str, Any] = {"reason": "new contract", "by": Author("alice"), "at": AT}

KINDS: dict[str, Any] = {
    "system user": lambda end: SystemUserFactory.create(expires_at=end),
    "intermediary": lambda end: IntermediaryFactory.create(active_until=end),
    "permission": lambda end: GrantedPermissionFactory.create(
        valid_from=AT - 99 * DAY, valid_until=end
    ),
}
EVERY_KIND = pytest.mark.parametrize("new", KINDS.values(), ids=KINDS)


def as_stored(record: Any) -> datetime | None:
    record.refresh_from_db()
    return end_of(record)


@EVERY_KIND
@pytest.mark.parametrize(
    ("change", "end", "until"),
    [
        *((extend, END, until) for until in (END + DAY, None)),
        *((end_earlier, end, AT + DAY) for end in (END, None)),
    ],
)
def test_to_extend_sets_a_later_end_or_none_and_the_other_an_earlier_one(
    new: Any, change: Any, end: datetime | None, until: datetime | None
) -> None:
    record = new(end)
    change(record=record, until=until, **WHY)
    assert as_stored(record) == until
    assert Change.objects.get().reason == "new contract"


@EVERY_KIND
@pytest.mark.parametrize(
    ("change", "end", "until", "refusal"),
    [
        *((extend, END, until, "is not later") for until in (END, END - DAY, AT - DAY)),
        (extend, None, END, "It has no end date"),
        (extend, AT - 9 * DAY, AT - DAY, "in the past"),
        *((end_earlier, END, until, "is not earlier") for until in (END, END + DAY)),
        (end_earlier, END, AT - DAY, "in the past"),
        (end_earlier, AT - DAY, AT - 2 * DAY, "has already ended"),
    ],
)
def test_neither_changes_an_end_in_the_wrong_direction_or_into_the_past(
    new: Any, change: Any, end: datetime | None, until: datetime, refusal: str
) -> None:
    record = new(end)
    with pytest.raises(ServiceError, match=refusal):
        change(record=record, until=until, **WHY)
    assert as_stored(record) == end
    assert not Change.objects.exists()


@pytest.mark.parametrize("name", ["system user", "intermediary"])
def test_what_has_ended_goes_on_until_its_new_end(name: str) -> None:
    record = KINDS[name](AT - DAY)
    extend(record=record, until=END, **WHY)
    assert as_stored(record) == END


def test_a_permission_that_has_ended_is_granted_anew_and_its_own_dates_stay() -> None:
    old = KINDS["permission"](AT - DAY)
    new = extend(record=old, until=END, **WHY)
    assert isinstance(new, GrantedPermission)
    assert as_stored(old) == AT - DAY  # between then and now it was not in force
    assert new.pk != old.pk
    assert (new.valid_from, new.valid_until) == (AT, END)
    assert (new.taxpayer, new.intermediary) == (old.taxpayer, old.intermediary)
    assert set(new.codes.all()) == set(old.codes.all())
    assert Change.objects.get().reason == "new contract"


def test_a_revoked_permission_neither_goes_on_nor_ends_again() -> None:
    record = GrantedPermissionFactory.create(
        valid_from=AT - DAY, valid_until=END, revoked_at=AT - DAY
    )
    with pytest.raises(ServiceError, match="It is revoked"):
        extend(record=record, until=END + DAY, **WHY)
    with pytest.raises(ServiceError, match="already revoked"):
        end_earlier(record=record, until=AT + DAY, **WHY)


def test_a_permission_does_not_end_before_it_begins() -> None:
    record = GrantedPermissionFactory.create(valid_from=AT + 5 * DAY, valid_until=END)
    with pytest.raises(ServiceError, match="It begins"):
        end_earlier(record=record, until=AT + DAY, **WHY)


def test_the_role_of_an_intermediary_that_is_not_active_stays_so() -> None:
    record = IntermediaryFactory.create(active_until=END, is_active=False)
    extend(record=record, until=END + DAY, **WHY)
    record.refresh_from_db()
    assert not record.is_active


def test_a_year_longer_counts_from_the_end_or_from_today_if_that_has_passed() -> None:
    last = datetime(2027, 3, 11, 15, 59, 59, 999999, tzinfo=UTC)  # in Kuala Lumpur
    assert a_year_longer(KINDS["system user"](END), AT) == last
    today = datetime(2027, 3, 1, 15, 59, 59, 999999, tzinfo=UTC)
    assert a_year_longer(KINDS["system user"](AT - 99 * DAY), AT) == today
    assert a_year_longer(KINDS["system user"](None), AT) is None


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
