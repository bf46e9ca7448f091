"""`X-System-Warning`: for the clients that it concerns, and for no others."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory
from django.utils import timezone

from identity.sandbox.registry import make_sandbox
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.support.erp import FORM, PATH, Erp, new_erp
from tokens.checks import check_settings
from tokens.operations.login import log_in
from tokens.operations.paths import Operation, report_login, with_warnings
from tokens.operations.sandbox import log_in_with_sandbox
from tokens.operations.view import OperationView
from tokens.system_warnings import HEADER, faults_of

TEXT, DAY = "HTTP Basic is refused.", "2027-01-31"
SHOWN = f"From {DAY}: {TEXT}"


def warning(condition: str, text: str = TEXT) -> dict[str, str]:
    return {"text": text, "from": DAY, "condition": condition}


def header_of(
    *warnings: dict[str, str], begin: Any = log_in, basic: str = "", dpop: str = "", **form: str
) -> str | None:
    """The header of a login that a process with these warnings answers."""
    view = OperationView.as_view(
        operation=Operation(with_warnings(begin, [*warnings]), report_login)
    )
    sent = {"HTTP_AUTHORIZATION": basic} if basic else {}
    sent |= {"HTTP_DPOP": dpop} if dpop else {}
    body = urlencode({"grant_type": "client_credentials", **form})
    request = RequestFactory().post(PATH, body, content_type=FORM, **sent)  # type: ignore[arg-type]
    return view(request).headers.get(HEADER)


def of_body(erp: Erp) -> dict[str, str]:
    return {"client_id": erp.client_id, "client_secret": erp.client_secret}


def test_a_condition_concerns_those_requests_and_no_others(erp: Erp) -> None:
    body = of_body(erp)
    for condition, concerned, others in (
        ("every_login", [{"basic": erp.basic}, body], []),
        ("client_secret", [{"basic": erp.basic}, body], []),
        ("client_secret_basic", [{"basic": erp.basic}], [body]),
        ("scope_left_out", [body], [body | {"scope": "InvoicingAPI"}]),
        ("without_dpop", [body], [body | {"dpop": "x"}]),
    ):
        for request in concerned:
            assert header_of(warning(condition), **request) == SHOWN, (condition, request)
        for request in others:
            assert header_of(warning(condition), **request) is None, (condition, request)


def test_a_refusal_carries_it_too_and_tells_a_stranger_nothing(erp: Erp) -> None:
    stranger = new_erp()
    known = header_of(
        warning("client_secret"), **of_body(Erp(erp.client_id, stranger.client_secret))
    )
    unknown = CREDENTIALS[SandboxName.WORKS]  # not registered here
    other = header_of(
        warning("client_secret"), **of_body(Erp(unknown.client_id, erp.client_secret))
    )
    assert known == other == SHOWN


@pytest.mark.django_db
def test_a_client_of_the_sandbox_always_gets_one() -> None:
    make_sandbox(timezone.now())
    credentials = CREDENTIALS[SandboxName.SYSTEM_WARNING]
    erp = Erp(credentials.client_id, credentials.client_secret)
    own = "From 2999-12-31: This is a test of X-System-Warning."
    assert erp.login()[HEADER] == own
    works = CREDENTIALS[SandboxName.WORKS]
    assert HEADER not in Erp(works.client_id, works.client_secret).login()
    both = header_of(warning("every_login"), begin=log_in_with_sandbox, **of_body(erp))
    assert both == f"{own} | {SHOWN}"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "not a JSON list"),
        (["x"], "exactly text, from and condition"),
        ([{"text": "x", "from": DAY}], "exactly text, from and condition"),
        ([warning("always")], "the condition is unknown. Choose from: every_login, client_secret"),
        ([warning("every_login", "")], "the text is not"),
        ([warning("every_login", "a | b")], "the text is not"),
        ([warning("every_login", "a\nb")], "the text is not"),
        ([warning("every_login", "x" * 301)], "the text is not"),
        ([warning("every_login") | {"from": "31.01.2027"}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"from": "20270131"}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"from": 2027}], "not a date such as 2027-01-31"),
        ([warning("every_login") | {"condition": []}], "the condition is unknown"),
    ],
)
def test_a_wrong_value_is_named(value: Any, fault: str, settings: Any) -> None:
    (line,) = faults_of(value)
    assert fault in line
    settings.SYSTEM_WARNINGS = value
    assert [found.id for found in check_settings()] == ["tokens.E017"]
