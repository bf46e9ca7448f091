"""Logins on the staff pages: found, explained, simulated, and what callers are told of them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from identity.staff.logins.reasons import caller_texts, staff_text_of
from identity.staff.logins.refused import involved as reading
from identity.staff.logins.refused.involved import LatestLogins, latest_logins
from taxpayers.credential_kind import CredentialKind
from taxpayers.credentials import new_client_id
from taxpayers.models import Change
from taxpayers.rules import RegistryReason
from tests.client_auth.key_erp import new_key_erp
from tests.support import make
from tests.support.erp import Erp, description_of, event_of, new_erp, post
from tests.support.staff import list_url, page_url, task_url, text_of
from tokens.answers.description import describe
from tokens.explanation import CheckState, refusal_of
from tokens.login_events.partitions import first_id
from tokens.login_events.reference import CALLER_TEXTS, Cause, cause_of, made_at
from tokens.models import LoginEvent, SigningKey
from tokens.refusals.table import ON_BEHALF_CHECKS, REFUSALS

pytestmark = pytest.mark.django_db


def test_the_sentence_for_the_caller_is_on_the_page_in_every_language(
    blocked: Erp, officer: Client, django_assert_max_num_queries: Any
) -> None:
    answer = blocked.login()
    event, told = event_of(answer), description_of(answer)
    with django_assert_max_num_queries(14):
        response = officer.get(page_url(event))
    assert response.context["answer"]["client"] is None  # nothing of credentials
    texts = {code: text for code, _name, text in response.context["answer"]["callers"]}
    assert list(texts) == [code for code, _name in settings.LANGUAGES]
    english, malay = texts.values()
    said = "I will find out why, and tell you what we need to unblock it."  # not: ask us
    assert said in english
    assert re.search(r"on \d{1,2} \w{3} \d{4}, \d\d:\d\d\. I will", english)
    assert response.context["answer"]["received"] == told
    recorded = refusal_of(event)
    assert recorded is not None
    with translation.override("ms"):
        assert malay == describe(recorded, translation.gettext, is_spoken=True)
        caller_texts(lambda: "")
        assert translation.get_language() == "ms"  # the reader's, as before
    content = response.content.decode()
    assert f'<blockquote id="caller-en" lang="en">{english}</blockquote>' in content
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
    wrong = [event_of(erp.login(client_secret=other.client_secret)) for _ in range(2)]
    page = viewer.get(page_url(wrong[-1]))
    client = page.context["answer"]["client"]
    assert (client["system_user"], client["refusals"]) == (erp.system_user, 2)
    assert client["addresses"] == 1
    assert client["last_token_at"] is not None
    shown = text_of(page)
    assert f"The client ID {erp.client_id} exists. Opera PMS" in shown
    assert "Refused in the last 24 hours 2 logins , from 1 address" in shown.replace(
        "logins,", "logins ,"
    )
    assert "Do not tell the caller whether the client ID exists" in shown
    assert erp.client_secret not in shown


def test_of_an_unknown_id_staff_see_that_no_client_has_it(viewer: Client) -> None:
    unknown = new_client_id("test")
    shown = viewer.get(page_url(event_of(new_erp().login(client_id=unknown))))
    assert shown.context["records"] == []
    page = text_of(shown)
    assert f"No system user has the client ID {unknown}." in page
    assert "Last token None is stored" in page


def test_a_limited_number_of_logins_is_read(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LOGINS", 2)
    erp, other = new_erp(), new_erp()
    events = [event_of(erp.login(client_secret=other.client_secret)) for _ in range(3)]
    found = latest_logins(erp.client_id)
    assert [row.pk for row in found.rows] == [event.pk for event in events[:0:-1]]
    assert found.has_more
    page = text_of(viewer.get(page_url(events[0])))
    assert "None in its last 2 logins" in page
    assert "Refused in the last 24 hours 2 logins or more" in page
    assert latest_logins("") == LatestLogins([])


def test_a_token_for_another_taxpayer_does_not_count_as_fixed() -> None:
    event = event_of(post(b""))
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


def test_a_throttled_reference_is_explained_with_its_time_and_what_to_tell_the_caller(
    viewer: Client,
) -> None:
    made = timezone.now() - timedelta(hours=1)
    local = timezone.localtime(made)
    message = f"429 Too many logins. Reference: {reference_of(made)}"
    page = text_of(viewer.get(list_url(LoginEvent), {"q": message}))
    assert f"No record: this reference was made at {local.day} {local:%b %Y, %H:%M}." in page
    assert "Logins that a limit refused (429)" in page
    assert "Tell the caller English Your ERP system sent too many logins" in page
    with translation.override("ms"):
        malay = translation.gettext(CALLER_TEXTS[Cause.NOT_STORED])
    assert malay in page
    assert "Nothing found" not in page  # the page says above what there is to say


def test_a_login_that_filters_hide_is_shown_by_a_link(viewer: Client, erp: Erp) -> None:
    event = event_of(erp.login())
    page = viewer.get(list_url(LoginEvent), {"q": str(event.pk), "reason": "refused"})
    assert "your filters hide it" in text_of(page)
    assert "Tell the caller" not in text_of(page)
    assert page_url(event) in page.content.decode()


WHAT_IF = reverse("admin:tokens_loginevent_what_if")


def answer(client: Client, **asked: str) -> Any:
    return client.get(WHAT_IF, asked).context["answer"]


def what_if(client: Client, **asked: str) -> str:
    return text_of(client.get(WHAT_IF, asked))


def test_a_simulation_on_behalf_of_another_taxpayer(viewer: Client, intermediary: Erp) -> None:
    represented = str(make.permission(intermediary=intermediary.role).taxpayer.identifier)
    page = what_if(viewer, client_id=intermediary.client_id, on_behalf_of=represented)
    assert f"Intermediary {intermediary.tin}" in page
    assert "documents:submit, documents:view" in page
    assert "A token would be issued." in page
    page = what_if(viewer, client_id=intermediary.client_id, on_behalf_of="C999999")
    assert "The login would be refused: No permission." in page
    assert "The taxpayer granted a permission: no" in page
    for asked, expected in (
        ({}, CheckState.NOT_ASKED),
        ({"on_behalf_of": represented}, CheckState.PASSED),
    ):
        checks = answer(viewer, client_id=intermediary.client_id, **asked)["checks"]
        states = {check.result.state for check in checks if check.result.check in ON_BEHALF_CHECKS}
        assert states == {expected}
    assert not LoginEvent.objects.exists()  # it decides without a login
    assert not Change.objects.exists()


def test_a_simulation_at_another_time_shows_each_state_as_it_will_be_then(viewer: Client) -> None:
    user = make.system_user(expires_at=datetime(2030, 6, 30, 15, 59, 59, tzinfo=UTC))
    make.credential(system_user=user, expires_at=datetime(2040, 1, 1, tzinfo=UTC))
    for moment, result, states in (
        ("2030-06-30T23:59", "A token would be issued.", ["Active", "Valid"]),
        ("2030-07-01T00:00", "refused: System user expired.", ["Expired", "Valid"]),
        ("2041-01-01T00:00", "refused: Secret expired.", ["No valid secret", "Expired"]),
    ):
        asked = {"client_id": user.client_id, "moment": moment}
        assert result in what_if(viewer, **asked)
        shown = answer(viewer, **asked)
        assert [shown[name].word for name in ("user_state", "secret_state")] == states


def test_a_simulation_uses_the_secret_that_expires_last(viewer: Client) -> None:
    at = timezone.now()
    old = make.credential(slot=None, revoked_at=at)
    assert "Secret revoked" in what_if(viewer, client_id=old.system_user.client_id)
    new = make.credential(system_user=old.system_user, created_at=at - timedelta(days=2))
    assert answer(viewer, client_id=old.system_user.client_id)["secret"] == new
    longer = make.credential(system_user=old.system_user, slot=2, created_at=at)
    assert answer(viewer, client_id=f" {old.system_user.client_id} ")["secret"] == longer


def test_a_simulation_names_the_key_of_a_client_that_has_no_secret(viewer: Client) -> None:
    user = new_key_erp().system_user
    user.credentials.update(expires_at=timezone.now())
    words = answer(viewer, client_id=user.client_id)["words"]
    assert words == staff_text_of(RegistryReason.SECRET_EXPIRED, CredentialKind.KEY)
    assert words != staff_text_of(RegistryReason.SECRET_EXPIRED, CredentialKind.SECRET)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"client_id": "ci_test_nobody"}, "There is no system user with this client ID."),
        ({"client_id": "{known}", "on_behalf_of": "C-1"}, "'C-1' is not a valid identifier"),
        ({"client_id": "{known}", "moment": "soon"}, "Enter a valid date/time."),
        ({"client_id": "{known}", "moment": "0001-01-01T00:00"}, "Enter a valid date/time."),
        ({"client_id": "{known}"}, "It has no secret, so it cannot log in."),
    ],
)
def test_a_simulation_with_wrong_values_shows_why(
    asked: dict[str, str], shown: str, viewer: Client
) -> None:
    known = make.system_user().client_id
    asked = {name: value.format(known=known) for name, value in asked.items()}
    assert shown in what_if(viewer, **asked)


def test_the_signing_key_is_rotated_by_a_security_officer(officer: Client) -> None:
    new_erp().login()
    assert "Signing" in text_of(officer.get(list_url(SigningKey)))
    url = task_url(SigningKey, "rotate_signing_key")
    response = officer.post(url, {"alg": "ES256"})
    key = SigningKey.objects.latest("generation")
    assert response["Location"] == page_url(key)
    page = officer.get(page_url(key))
    assert "Published, not yet signing" in text_of(page)
    assert f"The key {key.kid} is published and signs from" in text_of(page)
    assert "private" not in page.content.decode().lower().replace("private-", "")
    assert "is published already" in " ".join(
        officer.post(url, {"alg": "ES256"}).context["form"].non_field_errors()
    )
    assert Change.objects.latest("pk").by == "kumar"
