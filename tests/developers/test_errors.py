"""`GET /errors/REASON`: the public page to which a refusal links (contract 1)."""

import json
from html import unescape

import pytest
from django.test import Client

from taxpayers.rules import RegistryReason
from tokens.refusals.description import TOO_MANY_FAILED
from tokens.refusals.table import REFUSALS, ProtocolReason


def page_of(reason: str) -> str:
    response = Client().get(f"/errors/{reason}")
    assert response.status_code == 200
    return unescape(response.content.decode())


# These tests may not query a database: one that did would fail.


@pytest.mark.parametrize("reason", REFUSALS)
def test_each_reason_has_a_page_that_says_what_happened_and_who_can_fix_it(reason: str) -> None:
    page, refusal = page_of(reason), REFUSALS[reason]
    assert f"<title>{refusal.staff_text}</title>" in page
    assert f"<h1>{refusal.staff_text}</h1>" in page
    assert f"<dd>{refusal.fixed_by}</dd>" in page
    assert f"<code>{reason}</code>" in page
    assert f"<code>{refusal.status} {refusal.error}</code>" in page
    assert page.count("<p>") >= 1
    assert not {"{", "}"} & set(page)  # no placeholder is left


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
    assert f"<p>{text}" in page_of(reason)


def test_a_page_may_be_cached_and_is_the_same_for_everybody() -> None:
    answers = [
        Client().get("/errors/no_permission", headers={"Accept-Language": language})
        for language in ("en", "ms")
    ]
    assert answers[0].content == answers[1].content
    for answer in answers:
        assert answer["Content-Type"] == "text/html; charset=utf-8"
        assert answer["Cache-Control"] == "public, max-age=3600"
        assert answer["Content-Length"] == str(len(answer.content))
        assert not {"Set-Cookie", "Vary", "Location"} & set(answer.headers)


def test_a_page_is_only_read() -> None:
    answer = Client().post("/errors/no_permission")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert Client().head("/errors/no_permission").status_code == 200


@pytest.mark.parametrize("name", ["unknown", "", "no_permission/", "No_Permission", "<script>"])
def test_an_unknown_reason_is_a_404_in_json(name: str) -> None:
    answer = Client().get(f"/errors/{name}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert json.loads(answer.content)["error"] == "not_found"
    assert b"<" not in answer.content
