"""A reference without a login: the id holds its time, so staff read why there is no record."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils import timezone, translation

from tests.support.erp import Erp
from tests.support.staff import list_url, page_url, text_of
from tokens.login_events.partitions import first_id
from tokens.login_events.reference import CALLER_TEXTS, Cause, cause_of, made_at
from tokens.models import LoginEvent

NOW = datetime(2026, 5, 20, 4, 30, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
_VERSION_AND_VARIANT = (7 << 76) | (1 << 63)


def reference_of(at: datetime) -> UUID:
    """A reference as the service makes one at that moment."""
    return UUID(int=first_id(at).int | _VERSION_AND_VARIANT)


@pytest.mark.parametrize(
    ("made", "oldest", "cause"),
    [
        (None, None, Cause.NOT_OURS),
        (NOW + 6 * MINUTE, None, Cause.FUTURE),
        (NOW + 4 * MINUTE, None, Cause.NOT_STORED),  # the clock of a node is a little ahead
        (NOW - 2 * DAY, NOW - DAY, Cause.DELETED),
        (NOW - DAY, NOW - DAY, Cause.NOT_STORED),
        (NOW - DAY, NOW - 2 * DAY, Cause.NOT_STORED),
        (NOW - DAY, None, Cause.NOT_STORED),
    ],
)
def test_the_moment_of_a_reference_tells_why_it_has_no_record(
    made: datetime | None, oldest: datetime | None, cause: Cause
) -> None:
    assert cause_of(made, oldest, NOW) is cause


def test_a_reference_holds_its_moment_and_any_other_id_holds_none() -> None:
    assert set(CALLER_TEXTS) == set(Cause)  # each has something to tell the caller
    assert made_at(reference_of(NOW)) == NOW
    assert made_at(uuid4()) is None
    assert made_at(UUID(int=reference_of(NOW).int & ~(1 << 63))) is None  # another variant
    assert made_at(UUID(int=(2**48 - 1) << 80 | _VERSION_AND_VARIANT)) is None  # year 10889


def searched(client: Client, term: object) -> str:
    return text_of(client.get(list_url(LoginEvent), {"q": str(term)}))


def test_a_throttled_reference_is_explained_with_its_time_and_what_to_tell_the_caller(
    viewer: Client,
) -> None:
    made = timezone.now() - timedelta(hours=1)
    local = timezone.localtime(made)
    page = searched(viewer, f"429 Too many logins. Reference: {reference_of(made)}")
    assert f"No record: this reference was made at {local.day} {local:%b %Y, %H:%M}." in page
    assert "Logins that a limit refused (429)" in page
    assert "Tell the caller English Your ERP system sent too many logins" in page
    with translation.override("ms"):
        malay = translation.gettext(CALLER_TEXTS[Cause.NOT_STORED])
    assert malay in page
    assert "Nothing found" not in page  # the page says above what there is to say


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        (reference_of(timezone.now() + DAY), "names a time in the future"),
        (uuid4(), "this is not a reference of this service"),
    ],
    ids=["future", "not ours"],
)
def test_a_reference_that_cannot_be_ours_is_called_so(
    reference: UUID, shown: str, viewer: Client
) -> None:
    page = searched(viewer, reference)
    assert shown in page
    assert "Please copy the whole error message" in page


def test_a_reference_that_is_older_than_every_login_was_deleted(viewer: Client, erp: Erp) -> None:
    erp.login()
    page = searched(viewer, reference_of(timezone.now() - 500 * DAY))
    assert "older ones were deleted" in page


def test_a_login_that_filters_hide_is_shown_by_a_link(viewer: Client, erp: Erp) -> None:
    event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
    page = viewer.get(list_url(LoginEvent), {"q": str(event.pk), "reason": "refused"})
    assert "your filters hide it" in text_of(page)
    assert "Tell the caller" not in text_of(page)
    assert page_url(event) in page.content.decode()
