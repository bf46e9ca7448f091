"""The example of each page is what a real login is answered, but for references and dates."""

import json
import re

import pytest
from django.conf import settings
from django.http import HttpResponse

from identity.developers.examples import ACCESS_TOKEN, issued_example, refused_example
from tests.developers.pages import page_of
from tests.developers.refused_logins import LOGINS
from tests.support.erp import Erp
from tokens.refusals.table import REFUSALS

pytestmark = pytest.mark.django_db

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


@pytest.mark.parametrize("reason", REFUSALS)
def test_the_example_of_a_reason_is_a_real_answer(reason: str) -> None:
    real = on_the_wire(LOGINS[reason]()).replace("https://id.example.org", settings.AUTH_URL)
    example = refused_example(reason, settings.AUTH_URL).text
    assert essence(example) == essence(real)
    assert example in page_of(f"/errors/{reason}")


def test_the_example_of_a_token_is_a_real_answer(erp: Erp) -> None:
    answer = erp.login()
    token = json.loads(answer.content)["access_token"]
    real = on_the_wire(answer).replace(token, ACCESS_TOKEN).replace(erp.tin, "C1234567890")
    example = issued_example(settings.AUTH_URL).text
    length = re.compile(r"Content-Length: \d+")
    assert length.sub("*", essence(example)) == length.sub("*", essence(real))
    assert example in page_of("/")


def test_what_is_compared_is_almost_everything() -> None:
    example = refused_example("rate_limited", settings.AUTH_URL).text
    assert essence(example).count("*") == 5
    assert "X-Rate-Limit-Remaining: 0" in essence(example)
