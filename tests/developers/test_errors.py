"""`/errors/` and `/errors/REASON`: the public pages to which a refusal links (contract 1)."""

import json
import re

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from identity.developers.examples import ACCESS_TOKEN, issued_example, refused_example
from tests.developers.pages import page_of, text_of
from tests.developers.refused_logins import LOGINS
from tests.support.erp import Erp
from tokens.refusals.table import REFUSALS, Check


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


@pytest.mark.parametrize("name", ["unknown", "no_permission/", "No_Permission", "<script>"])
def test_an_unknown_reason_is_a_404_in_json(name: str) -> None:
    answer = Client().get(f"/errors/{name}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert json.loads(answer.content)["error"] == "not_found"
    assert b"<" not in answer.content


# --- The example of each page: what a real login is answered, but for references and dates --------

# What differs from login to login: references, moments, a nonce, and where a limit stands.
_VARIES = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|(?<=DPoP-Nonce: )\S+|(?<=Retry-After: )\d+"
)


def on_the_wire(response: HttpResponse) -> str:
    lines = [f"HTTP/1.1 {response.status_code} {response.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in response.items()]
    return "\n".join([*lines, "", response.content.decode()])


def essence(text: str) -> str:
    return _VARIES.sub("*", text)


@pytest.mark.django_db
@pytest.mark.parametrize("reason", REFUSALS)
def test_each_reason_has_a_page_that_says_what_happened_and_who_can_fix_it(reason: str) -> None:
    """Its example is what a real login is answered."""
    page, refusal = page_of(f"/errors/{reason}"), REFUSALS[reason]
    assert f"<title>{refusal.staff_text} · Access tokens for e-invoicing</title>" in page
    assert f"<h1>{refusal.staff_text}</h1>" in page
    assert f"<dd>{refusal.fixed_by}</dd>" in page
    assert f"<code>{reason}</code>" in page
    assert f"<code>{refusal.status} {refusal.error}</code>" in page
    assert '<p class="lead">' in page
    if refusal.check:
        assert f"<dt>Check {[*Check].index(refusal.check) + 1} of {len(Check)}</dt>" in page
    shown = text_of(page)
    assert shown.index(refusal.staff_text) < shown.index("Who can fix it") < shown.index("Example")
    prose = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert not {"{", "}"} & set(prose)  # no placeholder is left
    example = refused_example(reason, settings.AUTH_URL).text
    assert example in page
    real = on_the_wire(LOGINS[reason]()).replace("https://id.example.org", settings.AUTH_URL)
    assert essence(example) == essence(real)


def test_the_example_of_a_token_is_a_real_answer(erp: Erp) -> None:
    answer = erp.login()
    token = json.loads(answer.content)["access_token"]
    real = on_the_wire(answer).replace(token, ACCESS_TOKEN).replace(erp.tin, "C1234567890")
    example = issued_example(settings.AUTH_URL).text
    length = re.compile(r"Content-Length: \d+")
    assert length.sub("*", essence(example)) == length.sub("*", essence(real))
    assert example in page_of("/")
