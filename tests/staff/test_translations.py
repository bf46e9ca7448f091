"""The staff's pages in English and Malay: complete catalogues, and pages that use them."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.display import moment
from taxpayers.models import Change, SystemUser
from tests.support import catalogues, make
from tests.support.erp import Erp, description_of, event_of
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of

MALAY = {"Accept-Language": "ms"}
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


@pytest.mark.slow
def test_every_text_of_the_sources_is_in_the_catalogue_and_nothing_else() -> None:
    assert [code for code, _name in settings.LANGUAGES] == ["en", catalogues.LANGUAGE]
    stored = set(catalogues.texts_of(catalogues.read()))
    marked = set(catalogues.sources())
    assert ("%(counter)s found", "%(counter)s found") in marked  # a plural of a template
    assert not marked - stored, "make messages, then translate them in locale/ms"
    assert not stored - marked, "make messages"


def test_every_text_is_translated_with_the_same_placeholders() -> None:
    for text, message in catalogues.texts_of(catalogues.read()).items():
        strings = catalogues.translations_of(message)
        assert all(strings), f"not translated: {text!r}"
        assert not message.fuzzy, text
        sample = text if isinstance(text, str) else text[-1]
        for string in strings:
            placeholders = sorted(_PLACEHOLDER.findall(string))
            assert placeholders == sorted(_PLACEHOLDER.findall(sample)), text


@pytest.fixture
def officer(db: None) -> Client:
    client = staff_client()
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "ms-MY,ms;q=0.9,en;q=0.5"
    return client


def heading_of(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    found = re.search(r"<h1[^>]*>(.*?)</h1>", response.content.decode(), re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split()) if found else ""


def test_each_kind_of_page_is_in_malay(officer: Client) -> None:
    response = officer.get(reverse("admin:index"))
    assert response["Content-Language"] == "ms"
    assert '<html lang="ms"' in response.content.decode()
    assert heading_of(response) == "Hari ini"
    shown = text_of(response)
    for text in ("Pembayar cukai", "Perantara", "Kebenaran", "Pengguna sistem", "Log masuk"):
        assert text in shown
    for text in ("Taxpayers", "System users", "Signing keys", "Audit and keys"):
        assert text not in shown
    assert "Sejarah" in text_of(officer.get(list_url(Change), follow=True))
    task = officer.get(task_url(make.system_user(), "block_system_user"))
    assert heading_of(task) == "Sekat pengguna sistem"
    assert "Sebab" in text_of(task)
    assert "Taxpayer" not in text_of(officer.get(task_url(SystemUser, "issue_credentials")))
    sign_in = Client().get(reverse("account_login"), headers=MALAY)
    assert heading_of(sign_in) == "Log masuk"
    assert "Kata laluan" in text_of(sign_in)
    other = officer.get(reverse("admin:index"), headers={"Accept-Language": "de"})
    assert heading_of(other) == "Today"


def test_the_language_switch_is_on_every_page_and_overrides_the_browser(officer: Client) -> None:
    page = officer.get(reverse("admin:index"))
    assert f'action="{reverse("set_language")}"' in page.content.decode()
    chosen = {"language": "en", "next": reverse("admin:index")}
    assert officer.post(reverse("set_language"), chosen)["Location"] == reverse("admin:index")
    assert heading_of(officer.get(reverse("admin:index"))) == "Today"


def test_a_moment_is_in_the_time_zone_of_the_authority_with_utc_on_hover() -> None:
    at = datetime(2026, 8, 31, 17, 30, 5, tzinfo=UTC)
    local = timezone.localtime(at)
    assert str(local.tzinfo) == settings.TIME_ZONE == "Asia/Kuala_Lumpur"
    assert moment(at) == (
        '<time datetime="2026-08-31T17:30:05Z" title="2026-08-31 17:30:05 UTC">'
        "1 Sep 2026, 01:30</time>"
    )


def test_the_login_answers_in_english_for_every_accept_language(client: Client, db: None) -> None:
    client.get(reverse("account_login"), headers=MALAY)  # leaves Malay behind in this thread
    for path in ("/connect/token", "/api/v1/me", "/.well-known/jwks.json"):
        english = client.post(path, headers={"Accept-Language": "en"})
        malay = client.post(path, headers=MALAY)
        assert malay.status_code == english.status_code >= 400
        assert without_reference(malay) == without_reference(english)


def without_reference(response: Any) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "", response.content.decode())


def test_on_a_page_in_malay_the_explanation_is_malay_and_the_answer_stays_english(
    officer: Client, blocked: Erp
) -> None:
    answer = blocked.login(headers=MALAY)
    told = description_of(answer)
    assert told.startswith("This system user was blocked on ")
    page = officer.get(page_url(event_of(answer)))
    (failed,) = [check for check in page.context["checks"] if check.kind == "failed"]
    assert failed.result.advice.startswith("Pengguna sistem ini disekat pada ")
    assert told.partition(" on ")[2][:19] in failed.result.advice  # the date
    assert text_of(page).count(told) == 1  # what to tell a caller who reads English
