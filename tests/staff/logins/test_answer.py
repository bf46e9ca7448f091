"""What staff tell a caller: of a login, of a wrong secret, and of a reference without a record."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone, translation

from identity.staff.logins.reasons import caller_texts
from identity.staff.logins.refused import involved as reading
from identity.staff.logins.refused.involved import LatestLogins, latest_logins
from taxpayers.credentials import new_client_id
from tests.support.erp import Erp, new_erp, post
from tests.support.staff import list_url, page_url, text_of
from tokens.answers.description import describe
from tokens.explanation import refusal_of
from tokens.login_events.partitions import first_id
from tokens.login_events.reference import CALLER_TEXTS, Cause, cause_of, made_at
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

pytestmark = pytest.mark.django_db


def refused(response: object) -> tuple[LoginEvent, str]:
    """The login, and what the client was told."""
    event = LoginEvent.objects.get(pk=response["correlationId"])  # type: ignore[index]
    body = json.loads(response.content)  # type: ignore[attr-defined]
    return event, body["error_description"].split(" Reference: ")[0]


def test_the_sentence_for_the_caller_is_on_the_page_in_every_language(
    blocked: Erp, officer: Client, django_assert_max_num_queries: Any
) -> None:
    event, told = refused(blocked.login())
    with django_assert_max_num_queries(14):
        response = officer.get(page_url(event))
    assert response.context["answer"].client is None  # nothing of credentials
    texts = response.context["answer"].callers
    assert [text.language for text in texts] == [code for code, _name in settings.LANGUAGES]
    english, malay = texts
    said = "I will find out why, and tell you what we need to unblock it."  # not: ask us
    assert said in english.text
    assert response.context["answer"].received == told
    recorded = refusal_of(event)
    assert recorded is not None
    with translation.override("ms"):
        assert malay.text == describe(recorded, translation.gettext, is_spoken=True)
        caller_texts(lambda: "")
        assert translation.get_language() == "ms"  # the reader's, as before
    content = response.content.decode()
    assert f'<blockquote id="caller-en" lang="en">{english.text}</blockquote>' in content
    assert f'The ERP system received: <q lang="en">{told}</q>' in content
    assert all(f'data-copy="caller-{language}"' in content for language in ("en", "ms"))
    assert "staff/copy" in content


def test_no_sentence_for_a_caller_speaks_of_the_authority_as_of_another() -> None:
    for reason, refusal in REFUSALS.items():
        assert "tax authority" not in (refusal.spoken or refusal.text), reason


def test_of_a_wrong_secret_staff_see_whose_id_it_is_and_when_it_last_worked(viewer: Client) -> None:
    erp = new_erp(name="Opera PMS")
    erp.login()
    other = new_erp()
    wrong = [refused(erp.login(client_secret=other.client_secret))[0] for _ in range(2)]
    page = viewer.get(page_url(wrong[-1]))
    client = page.context["answer"].client
    assert (client.system_user, client.refusals, client.addresses) == (erp.system_user, 2, 1)
    assert client.last_token_at is not None
    shown = text_of(page)
    assert f"The client ID {erp.client_id} exists. Opera PMS" in shown
    assert "Refused in the last 24 hours 2 logins , from 1 address" in shown.replace(
        "logins,", "logins ,"
    )
    assert "Do not tell the caller whether the client ID exists" in shown
    assert erp.client_secret not in shown


def test_of_an_unknown_id_staff_see_that_no_client_has_it(viewer: Client) -> None:
    unknown = new_client_id("test")
    event, _told = refused(new_erp().login(client_id=unknown))
    page = text_of(viewer.get(page_url(event)))
    assert f"No system user has the client ID {unknown}." in page
    assert "Last token None is stored" in page


def test_a_limited_number_of_logins_is_read(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LOGINS", 2)
    erp, other = new_erp(), new_erp()
    events = [refused(erp.login(client_secret=other.client_secret))[0] for _ in range(3)]
    found = latest_logins(erp.client_id)
    assert [row.pk for row in found.rows] == [event.pk for event in events[:0:-1]]
    assert found.has_more
    page = text_of(viewer.get(page_url(events[0])))
    assert "None in its last 2 logins" in page
    assert "Refused in the last 24 hours 2 logins or more" in page
    assert latest_logins("") == LatestLogins([])


def test_a_token_for_another_taxpayer_does_not_count_as_fixed() -> None:
    event = LoginEvent.objects.get(pk=post(b"")["correlationId"])
    event.subject, event.actor = "C2", "C1"
    erp = new_erp()
    erp.login()
    latest = latest_logins(erp.client_id)
    assert latest.token_since(event) is None
    event.subject = event.actor = ""  # it is not recorded for which taxpayer it was
    assert latest.token_since(event) is not None


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


def test_a_login_that_filters_hide_is_shown_by_a_link(viewer: Client, erp: Erp) -> None:
    event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
    page = viewer.get(list_url(LoginEvent), {"q": str(event.pk), "reason": "refused"})
    assert "your filters hide it" in text_of(page)
    assert "Tell the caller" not in text_of(page)
    assert page_url(event) in page.content.decode()
