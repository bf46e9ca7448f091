"""A secret or a token that staff type or paste is stored nowhere, and is in no address."""

from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse

from taxpayers.credentials import new_client_secret
from taxpayers.models import Change, Intermediary, SystemUser, Taxpayer, UploadedFile
from taxpayers.redaction import hide_pasted_secrets, holds_secret
from tests.support import make
from tests.support.staff import list_url, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

SECRET = new_client_secret("test")
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl"
PASTED = {
    "secret": SECRET,
    "in a text": f"my secret: {SECRET}.",
    "after an underscore": f"client_secret_{SECRET}",
    "in capitals": SECRET.upper(),
    "cut off": SECRET[:20],
    "token": TOKEN,
    "with its scheme": f"Bearer {TOKEN}",
    "webhook": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "encoded": quote_plus(quote(SECRET).replace("_", "%5F")),
}
PARTS = (SECRET[8:20], SECRET[30:40], SECRET.upper()[8:20], TOKEN[4:20], TOKEN[25:], "GKYqrTwjUPD8")
TAXPAYERS = list_url(Taxpayer)
# Where a text of staff stands in an address, and the rest of that address.
ADDRESSES = {
    "search of a list": (TAXPAYERS, "q", "is_active__exact=1"),
    "export": (f"{TAXPAYERS}export.csv", "q", ""),
    "suggestions": (reverse("admin:taxpayers_taxpayer_suggest"), "q", ""),
    "search of all": (reverse("staff_search"), "q", ""),
    "filter": (list_url(LoginEvent), "reason", "period=1"),
    "no filter": (list_url(LoginEvent), "nothing", ""),
}


def stored() -> str:
    rows = [*Change.objects.values(), *SystemUser.objects.values()]
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM staff_cache")
        return f"{rows} {cursor.fetchall()}"


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_one_is_known_by_its_form_and_hidden(text: str) -> None:
    shown = hide_pasted_secrets(text)
    assert holds_secret(text)
    assert not holds_secret(shown)
    assert "[hidden]" in shown
    assert not {part for part in PARTS if part in unquote_plus(unquote_plus(shown))}


@pytest.mark.parametrize(
    "text",
    [
        *("", "eyJ", "Docs_live", "docs_test_report", "cs_demo_1", "whsec", "C1234567890"),
        *("w2AvDlRVHR9avhJrJqS1CI8B_N-VCcPARvDXDxLh9Yg", "100 %", "cs_test_[hidden]"),
    ],
)
def test_anything_else_is_as_it_was(text: str) -> None:
    assert hide_pasted_secrets(text) == text


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_with_one_leads_to_the_address_without_it(name: str, registrar: Client) -> None:
    path, parameter, rest = ADDRESSES[name]
    answer: Any = registrar.get(f"{path}?{rest}&{parameter}={quote_plus(SECRET)}")
    assert (answer.status_code, answer["Location"]) == (302, f"{path}?{rest}" if rest else path)
    shown = registrar.get(TAXPAYERS)
    assert "This is a secret or a token. It was not searched for, and not stored." in text_of(shown)
    assert not Change.objects.exists()


@pytest.mark.parametrize("method", ["get", "post"])
def test_before_the_sign_in_too(method: str) -> None:
    asked = f"/admin/login/?next={quote_plus(f'{TAXPAYERS}?q={SECRET}')}"
    answer = getattr(Client(), method)(asked)
    assert (answer.status_code, answer["Location"]) == (302, "/admin/login/")
    in_path = getattr(Client(), method)(f"{TAXPAYERS}{SECRET}/")
    assert (in_path.status_code, in_path["Location"]) == (302, reverse("admin:index"))


def test_the_search_of_a_list_is_sent_in_the_body_and_gets_an_address_without_one(
    registrar: Client,
) -> None:
    page = registrar.get(f"{TAXPAYERS}?is_active__exact=1").content.decode()
    assert '<form id="changelist-search" class="search-box" method="post"' in page
    others = {"csrfmiddlewaretoken": "x", "is_active__exact": "1"}
    right = registrar.post(TAXPAYERS, {"q": "Kedai 1", **others})
    assert right["Location"] == f"{TAXPAYERS}?q=Kedai+1&is_active__exact=1"
    answer = registrar.post(TAXPAYERS, {"q": SECRET, **others}, follow=True)
    assert answer.redirect_chain == [(f"{TAXPAYERS}?is_active__exact=1", 302)]
    assert "It was replaced by [hidden], and not stored." in text_of(answer)


@pytest.mark.parametrize("text", [SECRET, f"Bearer {TOKEN}"], ids=["secret", "token"])
def test_a_form_with_one_is_stored_without_it(text: str, officer: Client) -> None:
    user = make.system_user()
    assert officer.post(task_url(user, "block_system_user"), {"reason": text}).status_code == 302
    assert Change.objects.get().reason
    found = stored()
    assert not {part for part in PARTS if part in found}


@pytest.mark.parametrize("kind", ["taxpayers", "intermediaries"])
def test_an_imported_file_with_one_is_stored_without_it(kind: str, registrar: Client) -> None:
    """Neither in its name, which the history shows, nor in the names in it."""
    make.taxpayer(tin="C7000000001")
    model, task, row = {
        "taxpayers": (Taxpayer, "import_registry", f"tin,name\nC7000000002,Kedai {TOKEN}\n"),
        "intermediaries": (Intermediary, "import_intermediaries", "tin\nC7000000001\n"),
    }[kind]
    url = task_url(model, task)
    file = SimpleUploadedFile(f"{SECRET} {TOKEN}.csv", row.encode())
    preview: Any = registrar.post(url, {"file": file}, follow=True)
    assert not {part for part in PARTS if part in UploadedFile.objects.get().name}
    registrar.post(preview.redirect_chain[-1][0])
    assert Change.objects.get().reason == "file cs_test_[hidden] [hidden]"
    assert not {part for part in PARTS if part in f"{stored()} {Taxpayer.objects.values()}"}


def test_a_password_is_not_changed(registrar: Client, settings: Any) -> None:
    change = reverse("account_change_password")
    answer: Any = registrar.post(change, {"oldpassword": SECRET, "password1": "x"})
    assert "[hidden]" not in answer.content.decode()


def test_an_address_with_thousands_of_escapes_is_not_examined(registrar: Client) -> None:
    text = "%2525" * 5000
    answer: Any = registrar.get(f"{TAXPAYERS}?q={text}")
    assert (answer.status_code, answer["Location"]) == (302, TAXPAYERS)
    assert registrar.get(f"{TAXPAYERS}?q={text[:20000]}").status_code == 200
