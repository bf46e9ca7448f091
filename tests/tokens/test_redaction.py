"""What is hidden of a text that a client sent, and what stays readable (contract 5)."""

import base64
import json
import logging
import sys
from random import Random
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from identity.logs import JsonFormatter, TextFormatter
from taxpayers import credentials
from taxpayers.redaction import HIDDEN, hide_marked_secrets, hide_secrets
from taxpayers.validation import validate_reason
from tests.support.erp import Erp
from tokens.http import error_description
from tokens.refusals.table import REFUSALS

ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
API_ID = "pa_test_0tZ9IYGT3jkU4Y0n78mfDC2vpszh"
SECRET = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"
BODY = SECRET[8:]
PART, REST = BODY[:20], "9xQ7a"
BASIC = base64.b64encode(f"{ID}:{SECRET}".encode()).decode()
JWT = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJDMSJ9.c2ln-bmF0_dXJl"


def nested(text: str, depth: int) -> str:
    """Percent-encoded, then the digits of that, and so on."""
    for level in range(depth):
        text = "".join(c if level and c == "%" else f"%{ord(c):02x}" for c in text)
    return text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (SECRET, f"cs_test_{HIDDEN}"),
        (SECRET.upper(), f"CS_TEST_{HIDDEN}"),
        (f"ps{SECRET[2:]}", f"ps_test_{HIDDEN}"),
        ("ps_live_abc, cut off", f"ps_live_{HIDDEN}, cut off"),
        (API_ID, API_ID),
        (API_ID[:-1], f"{API_ID[:16]}{HIDDEN}"),
        ("cs_test_abc, cut off", f"cs_test_{HIDDEN}, cut off"),
        (BODY, HIDDEN),
        (f"{SECRET[:20]} {SECRET[20:]}", f"cs_test_{HIDDEN}"),
        (f"{BODY} internally {BODY}", f"{HIDDEN} internally {HIDDEN}"),
        (f"the secret {BODY[:20]}\n{BODY[20:]} is wrong", f"the secret {HIDDEN} is wrong"),
        (f"a={SECRET.replace('_', '%255F')}&b=1", f"a={HIDDEN}&b=1"),
        ("".join(f"%{ord(c):02x}" for c in PART), HIDDEN),
        ("".join(f"%2525{ord(c):02X}" for c in PART), HIDDEN),
        ("".join(f"%{'25' * 7}{ord(c):02X}" for c in PART), HIDDEN),
        (f"Basic {BASIC}", f"Basic {HIDDEN}"),
        (f"authorization: basic {BASIC}", f"authorization: basic {HIDDEN}"),
        ("Basic dXNlcjpwYXNz", f"Basic {HIDDEN}"),
        (JWT, HIDDEN),
        (f"token={JWT};", f"token={HIDDEN};"),
        (f"{BODY}.{BODY}.X6zPVx1uyl_P4Ex79yYmmM", f"{HIDDEN}.{HIDDEN}.{HIDDEN}"),
        (f"{BODY}-Nmb23tJe-1P882hqpHF_-mSfQ.7abc", f"{HIDDEN}-{HIDDEN}"),
        (f"{BODY}-word", f"{HIDDEN}-word"),
        (f"{SECRET}.Then it failed", f"cs_test_{HIDDEN}.Then it failed"),
        ("Bearer 0193a5c0-7b1e", f"Bearer {HIDDEN}"),
        ("0" * 16, HIDDEN),
        ("ci_test_" + BODY, f"ci_test_{BODY[:8]}{HIDDEN}"),
        (ID[:-1] + "X", f"{ID[:16]}{HIDDEN}"),
        (BODY[:36], HIDDEN),  # as long as a client id
        (f"{ID} {PART}", f"{ID} {HIDDEN}"),
        (f"ci_test_{BODY} is wrong", f"ci_test_{BODY[:8]}{HIDDEN} is wrong"),
        ("eyJabcd", HIDDEN),
        (f"100% {SECRET}", f"100% cs_test_{HIDDEN}"),
        (SECRET.replace("_", nested("_", 4)), HIDDEN),
        (f"{SECRET}.7abc", f"cs_test_{HIDDEN}.{HIDDEN}"),
        # What is no word belongs to the secret beside it, also beyond one word of 8 letters.
        (f"{PART} {REST}", HIDDEN),
        (f"{REST} {PART}", HIDDEN),
        (f"{PART} platform {REST}", HIDDEN),
        (f"{PART} platforms {REST}", f"{HIDDEN} platforms {REST}"),
        (f"word {REST} internationally {PART}", f"word {REST} internationally {HIDDEN}"),
        # Beyond a longer one, if both would be long without the blank.
        (f"{PART} Fxzjzsskog 7pLdtUG", HIDDEN),
        # "eyJ" in the middle of a secret, and a break after its prefix.
        ("Qp3uKBP Lp3zRtd1nzyEeyJMjgmflt16UfRzOQAfLsJyniN18w", HIDDEN),
        (f"cs_test_ MPBFQPKI {PART}", f"cs_test_ {HIDDEN}"),
    ],
)
def test_what_could_be_a_secret_is_hidden(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert hide_secrets(f"({text})") == f"({shown})"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ID,
        f"client {ID}: no such client",
        f"{ID.replace('test', 'live')[:8]}short",
        "ci_test_abc",
        "reference 0193a5c0-7b1e-7c44-9d3f-2b1a5e6f7081",
        "2026-11-21T10:00:00.123456+08:00",
        "C1000000001:202001234567",
        "2001:db8:85a3::8a2e:370:7334",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
        " Chrome/120.0.0.0 Safari/537.36",
        'File "/usr/lib/python3.11/site-packages/django/core/handlers/base.py", line 197, in _f',
        "django.core.exceptions.ImproperlyConfigured: AccessTokenAuthentication",
        "the Basic Authorization header is not base64 of client_id:client_secret",
        "Send the header Authorization: Bearer, followed by a token.",
        "100% of internationalization",
        "a" * 40,  # a long word of some language
        "internationalization 123456789012345",  # one digit less than could be a secret
        f"{ID} is unknown",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert hide_secrets(text) == text


def test_a_text_with_more_than_32_percent_signs_is_hidden_whole() -> None:
    for many in ("%20" * 33, nested(SECRET, 1), nested(SECRET, 4)):
        assert hide_secrets(f"see {many}, or not") == HIDDEN
    few = f"see{'%20or' * 32}"
    assert hide_secrets(few) == few
    assert hide_secrets("% " * 33) == "% " * 33  # nothing is encoded


def test_no_text_of_a_refusal_is_changed() -> None:
    for refusal in REFUSALS.values():
        for text in (refusal.text, refusal.without_date, refusal.without_detail):
            assert hide_secrets(text) == text


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        (SECRET, f"cs_test_{HIDDEN}"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILP/Io2LaLaSw+A==", f"whsec_{HIDDEN}"),
        ("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0-dXJl_", HIDDEN),
    ],
)
def test_of_a_name_only_a_secret_or_a_token_is_hidden(secret: str, shown: str) -> None:
    assert hide_marked_secrets(f"Node 0a1b2c3d4e5f60718293, {secret}, eyJx.y") == (
        f"Node 0a1b2c3d4e5f60718293, {shown}, eyJx.y"
    )


# --- Any secret, in any disguise, in any text -----------------------------------------------------
def broken(text: str, places: list[int], blank: str) -> str:
    for place in sorted({1 + p % (len(text) - 1) for p in places}, reverse=True):
        text = text[:place] + blank + text[place:]
    return text


def encoded(text: str, rng: Random, depth: int, share: float) -> str:
    percent = "%" + "25" * depth
    return "".join(
        f"{percent}{ord(c):02{rng.choice('xX')}}" if rng.random() < share else c for c in text
    )


SECRETS = st.integers(0, 2**32).map(lambda seed: secret_of(Random(seed)))  # noqa: S311 - repeatable
TEXT = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="%250aZ_ \n.:=-", max_size=20),
    st.sampled_from(["ci_test_", "cs_test_", "ci_live_", "Basic ", "bearer ", "eyJ", "kid=", "%2"]),
)


def secret_of(rng: Random) -> str:
    body = "".join(rng.choices(credentials._DIGITS, k=49))
    return rng.choice(["cs_test_", "cs_live_", "ps_live_"]) + body


def assert_nothing_survives(shown: str, secret: str) -> None:
    """No 16 characters of it in a row, also when the blanks are removed."""
    for text in (shown, "".join(shown.split())):
        for start in range(len(secret) - 15):
            assert secret[start : start + 16] not in text


PIECES = (slice(None), slice(8, None), slice(40), slice(9, 51))


def disguised(secret: str, other: str, rng: Random) -> list[tuple[str, str]]:
    """How a secret may stand in a text, and of what nothing may survive."""
    found = [(form, form) for form in (*(secret[piece] for piece in PIECES), secret.swapcase())]
    places = [rng.randrange(200) for _ in range(rng.randint(1, 2))]
    for blank in (" ", "\n", "\r\n", "\t"):
        found += [(broken(form, places, blank), form) for form in (secret, secret[8:])]
    for depth in range(4):
        form = encoded(secret, rng, depth, rng.random())
        found += [(form, form), (form, secret)]
    pair = base64.b64encode(f"{ID}:{quote_plus(secret)}".encode()).decode()
    token = f"eyJ{other[8:]}.{secret[8:]}.{other[20:]}"
    headers = (f"Basic {pair}", pair, f"Bearer {token}", token, f"Basic%20{pair}")
    return [*found, *((form, form[-60:]) for form in headers)]


@given(TEXT, SECRETS, SECRETS, st.integers(0, 2**32), TEXT)
@settings(max_examples=150, deadline=None)
def test_no_secret_survives_in_any_text_in_any_disguise(
    before: str, secret: str, other: str, seed: int, after: str
) -> None:
    for form, hidden in disguised(secret, other, Random(seed)):  # noqa: S311 - repeatable
        assert_nothing_survives(hide_secrets(before + form + after), hidden)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "%25", "a ", "%2", "cs_test_", "eyJ.", "Basic ", "%61"])
def test_a_hostile_text_takes_no_time(unit: str) -> None:
    """Linear: a quadratic rule would take minutes."""
    hide_secrets(unit * 50_000)


# --- Where it is applied --------------------------------------------------------------------------
def line_of(formatter: logging.Formatter | None = None, **fields: object) -> str:
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", **fields})
    return (formatter or JsonFormatter()).format(record)


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_no_part_of_a_log_line_has_a_secret(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"not this: {BODY}")
    except ValueError:
        error = sys.exc_info()
    line = line_of(
        formatter,
        msg="%s failed",
        args=(SECRET,),
        exc_info=error,
        stack_info=f"Stack: {BODY}",
        username=BODY,
        request=Erp(ID, SECRET),
        listed=[BODY],
        nested={"a": {"b": f"Basic {BASIC}"}},
    )
    assert_nothing_survives(line, SECRET)
    assert_nothing_survives(line, BASIC)
    assert "ValueError: not this" in line


def test_a_log_line_names_clients_keys_and_references() -> None:
    reference = UUID("0193a5c0-7b1e-7c44-9d3f-2b1a5e6f7081")
    kid = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    fields: dict[str, Any] = {
        "client_id": ID,
        "kid": kid,
        "reference": str(reference),
        "n": 12,
        "who": [ID],
    }
    line = json.loads(line_of(msg="rotated", **fields))
    assert {name: line[name] for name in fields} == fields


@pytest.mark.parametrize("made", [validate_reason, error_description])
def test_a_reason_of_staff_and_an_error_description_have_no_secret(made: Any) -> None:
    assert made(f"leaked: {BODY}") == f"leaked: {HIDDEN}"
