"""`/errors/` and `/errors/REASON`: the public pages to which a refusal links (contract 1)."""

import json
import re
from html import unescape

import pytest
from django.test import Client
from django.utils import translation

from taxpayers.rules import RegistryReason
from tests.developers.pages import page_of, text_of
from tokens.answers.description import TOO_MANY_FAILED
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

# These tests may not query a database: one that did would fail.


@pytest.mark.parametrize("reason", REFUSALS)
def test_each_reason_has_a_page_that_says_what_happened_and_who_can_fix_it(reason: str) -> None:
    page, refusal = page_of(f"/errors/{reason}"), REFUSALS[reason]
    assert f"<title>{refusal.staff_text} · Access tokens for e-invoicing</title>" in page
    assert f"<h1>{refusal.staff_text}</h1>" in page
    assert f"<dd>{refusal.fixed_by}</dd>" in page
    assert f"<code>{reason}</code>" in page
    assert f"<code>{refusal.status} {refusal.error}</code>" in page
    assert '<p class="lead">' in page
    prose = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert not {"{", "}"} & set(prose)  # no placeholder is left


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            RegistryReason.SECRET_EXPIRED,
            "This client_secret expired on the date in error_description. The person who rotates",
        ),
        (
            ProtocolReason.MISSING_PARAMETER,
            "The parameter named in error_description is missing or empty. ",
        ),
        (
            ProtocolReason.MALFORMED_REQUEST,
            "The request is malformed: error_description names the fault. The developer of",
        ),
        (
            ProtocolReason.MALFORMED_CREDENTIALS,
            "client_id, client_secret, client_assertion or the client certificate does not have the"
            " right form: error_description names the fault. The operator of",
        ),
        (RegistryReason.INVALID_SCOPE, "A scope that was asked for is unknown, or "),
        (RegistryReason.INVALID_SCOPE, "This client may have none of the scopes that it asks for."),
        (ProtocolReason.RATE_LIMITED, "Too many logins. Wait as long as Retry-After says. "),
        (ProtocolReason.RATE_LIMITED, TOO_MANY_FAILED),
    ],
)
def test_the_cause_is_that_of_any_login_with_this_reason(reason: str, text: str) -> None:
    assert re.search(rf"<p[^>]*>{re.escape(text)}", page_of(f"/errors/{reason}"))


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (ProtocolReason.RATE_LIMITED, "Yes, after as many seconds as Retry-After says"),
        (ProtocolReason.TEMPORARILY_UNAVAILABLE, "Yes, after as many seconds as Retry-After says"),
        (ProtocolReason.USE_DPOP_NONCE, "Yes, at once"),
        (ProtocolReason.SERVER_ERROR, "Yes, and wait longer after each failure"),
        (ProtocolReason.INVALID_CREDENTIALS, "No. The same request gets the same answer"),
        (RegistryReason.NO_PERMISSION, "No. The same request gets the same answer"),
    ],
)
def test_a_page_says_whether_to_try_again(reason: str, advice: str) -> None:
    assert f"<dt>Try again?</dt><dd>{advice}" in page_of(f"/errors/{reason}")


def test_a_page_names_its_check_and_leads_to_the_reasons_before_and_after_it() -> None:
    page = page_of("/errors/secret_expired")
    question = Check.SECRET_EXPIRY.question()
    assert f"<dt>Check 9 of {len(Check)}</dt><dd>{question}</dd>" in page
    assert '<a rel="prev" href="/errors/invalid_credentials">' in page
    assert '<a rel="next" href="/errors/secret_revoked">' in page
    first, *_, last = REFUSALS
    assert 'rel="prev"' not in page_of(f"/errors/{first}")
    assert 'rel="next"' not in page_of(f"/errors/{last}")


def test_the_list_has_every_reason_in_the_order_of_the_checks() -> None:
    page = page_of("/errors/")
    rows = re.findall(
        r'<tr><th scope="row"><a href="/errors/(\w+)">(.*?)</a></th><td><code>(\w+)</code></td>'
        r"<td><code>(\d+ \w+)</code></td><td>(.*?)</td></tr>",
        page,
    )
    assert rows == [
        (reason, row.staff_text, reason, f"{row.status} {row.error}", row.fixed_by)
        for reason, row in REFUSALS.items()
    ]


# --- In Malay -------------------------------------------------------------------------------------


def test_a_page_in_malay_has_the_texts_of_the_table_in_malay_and_the_answer_in_english() -> None:
    refusal = REFUSALS[RegistryReason.NO_PERMISSION]
    with translation.override("ms"):
        title, cause = (translation.gettext(text) for text in (refusal.staff_text, refusal.text))
    page = page_of("/ms/errors/no_permission")
    assert title != refusal.staff_text
    assert f"<h1>{title}</h1>" in page
    assert f'<p class="lead">{cause}</p>' in page
    assert refusal.text in page.partition("<pre")[2]
    assert refusal.text not in page.partition("<pre")[0]
    assert 'href="/ms/errors/permission_not_yet_valid"' in page


def test_the_list_in_malay_leads_to_pages_in_malay() -> None:
    page = page_of("/ms/errors/")
    assert '<a href="/ms/errors/no_permission">' in page
    assert 'href="/errors/' not in page


# --- As an address --------------------------------------------------------------------------------


def test_a_page_is_only_read() -> None:
    for path in (
        "/",
        "/errors/",
        "/errors/no_permission",
        "/openapi.json",
        "/developers/style.css",
    ):
        answer = Client().post(path)
        assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
        assert Client().head(path).status_code == 200


@pytest.mark.parametrize("name", ["unknown", "no_permission/", "No_Permission", "<script>"])
def test_an_unknown_reason_is_a_404_in_json(name: str) -> None:
    answer = Client().get(f"/errors/{name}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert json.loads(answer.content)["error"] == "not_found"
    assert b"<" not in answer.content


def test_a_reader_without_a_style_sheet_can_read_a_page() -> None:
    text = text_of(unescape(page_of("/errors/no_permission")))
    assert text.index("No permission") < text.index("Who can fix it") < text.index("Example")
