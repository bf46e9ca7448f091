"""What staff tell a caller, in both languages, and what they may know of a wrong secret."""

import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation

from identity.staff.logins.reasons import caller_texts
from identity.staff.logins.refused import involved as reading
from identity.staff.logins.refused.involved import LatestLogins, latest_logins
from taxpayers.credentials import new_client_id
from tests.support.erp import Erp, new_erp, post
from tests.support.staff import page_url, staff_client, text_of
from tokens.answers.description import describe
from tokens.explanation import refusal_of
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
    said = "I look up why, and tell you what we need to unblock it."  # not: ask the tax authority
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


# --- A wrong secret -----------------------------------------------------------------------------


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


def test_of_an_unknown_id_staff_see_that_nobody_has_it(viewer: Client) -> None:
    unknown = new_client_id("test")
    event, _told = refused(new_erp().login(client_id=unknown))
    page = text_of(viewer.get(page_url(event)))
    assert f"No system user has the client ID {unknown}." in page
    assert "Last token None is stored" in page


def test_a_limited_number_of_logins_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LOGINS", 2)
    erp = new_erp()
    references = [erp.login()["correlationId"] for _ in range(3)]
    found = latest_logins(erp.client_id)
    assert [str(row.pk) for row in found.rows] == references[:0:-1]
    assert found.has_more
    event, _told = refused(erp.login(client_secret=new_erp().client_secret))
    LoginEvent.objects.filter(reason="").delete()
    refused(erp.login(client_secret=new_erp().client_secret))
    refused(erp.login(client_secret=new_erp().client_secret))
    page = text_of(staff_client("viewer").get(page_url(event)))
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
    event.subject = event.actor = ""  # nobody knows for whom it was
    assert latest.token_since(event) is not None
