"""Every row of the contract's refusal table, by both doors: whole answer, record and log line."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.utils import timezone
from pytest_django import Settings

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.rules import Refused, RegistryReason
from tests.endpoint.test_event_loop import Sent, login_of
from tests.support import make
from tests.support.erp import Erp, assert_refused, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.wire.test_answers import Send, both, committed
from tokens.answers.description import describe
from tokens.answers.response import Answer
from tokens.http import error_body
from tokens.models import FailureBucket, LoginEvent
from tokens.operations import toolkit
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
DEVELOPER, OPERATOR, AUTHORITY = "developer of the ERP", "operator of the ERP", "tax authority"
REPRESENTED, ROTATES = "represented taxpayer", "person who rotates the secrets"
ADMINISTRATOR = "administrator of the intermediary"
EXPIRES_AT = "X-Client-Secret-Expires-At"
MATCHED = {
    EXPIRES_AT: r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "X-Rate-Limit-Limit": "12",
    "X-Rate-Limit-Remaining": r"\d+",
}
NONCE = {"DPoP-Nonce": r"\S+"}
SPECIFIED = {
    *("invalid_request", "invalid_client", "invalid_grant", "invalid_scope"),
    *("unauthorised_client", "unsupported_grant_type"),
}
# Only for clients whose tokens staff have bound to a key (RFC 9449).
OF_DPOP = {
    RegistryReason.DPOP_PROOF_MISSING: "invalid_dpop_proof",
    ProtocolReason.INVALID_DPOP_PROOF: "invalid_dpop_proof",
    ProtocolReason.USE_DPOP_NONCE: "use_dpop_nonce",
}


def test_every_reason_has_its_row_and_a_400_carries_a_value_of_the_specification() -> None:
    assert set(REFUSALS) == {*ProtocolReason, *RegistryReason}
    errors = {reason: row.error for reason, row in REFUSALS.items() if row.status == 400}
    assert {error for reason, error in errors.items() if reason not in OF_DPOP} <= SPECIFIED
    assert OF_DPOP.items() <= errors.items()


def test_the_rows_answer_every_check_in_the_contracts_order() -> None:
    checks = [row.check for row in REFUSALS.values() if row.check is not None]
    assert list(dict.fromkeys(checks)) == list(Check)
    without = {reason for reason, row in REFUSALS.items() if row.check is None}
    assert without == {ProtocolReason.TEMPORARILY_UNAVAILABLE, ProtocolReason.SERVER_ERROR}


def test_failed_authentications_count_as_failures_and_nothing_else_does() -> None:
    assert {reason for reason, row in REFUSALS.items() if row.counts_as_failure} == {
        ProtocolReason.INVALID_CREDENTIALS,
        RegistryReason.SECRET_EXPIRED,
        RegistryReason.SECRET_REVOKED,
        RegistryReason.SOURCE_NETWORK_NOT_ALLOWED,
    }


def test_every_reason_is_recorded_but_a_limit_an_outage_and_a_nonce() -> None:
    assert {reason for reason, row in REFUSALS.items() if not row.recorded} == {
        ProtocolReason.USE_DPOP_NONCE,
        ProtocolReason.RATE_LIMITED,
        ProtocolReason.TEMPORARILY_UNAVAILABLE,
    }


def test_what_is_told_without_a_date_names_none() -> None:
    for reason, row in REFUSALS.items():
        assert "{since}" not in row.without_date, reason


# --- Public texts -------------------------------------------------------------------------------
def test_a_description_has_only_the_characters_of_the_rfc() -> None:
    assert error_body("e", 'a"\\\xe9\n') == {"error": "e", "error_description": "a????"}
    refused = Refused(ProtocolReason.MALFORMED_REQUEST, detail='"\\\xe9')
    assert describe(refused).startswith("The request is malformed: ???. ")


def test_a_date_is_told_in_the_time_zone_of_the_authority() -> None:
    since = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
    with timezone.override("Asia/Kuala_Lumpur"):
        text = describe(Refused(RegistryReason.SECRET_EXPIRED, since=since))
    assert text.startswith("This client_secret expired on 2026-11-22 04:00:00 (UTC+0800). ")


# --- Each reason --------------------------------------------------------------------------------
def form(**changed: str | None) -> Sent:
    """A right login, but for these fields; None leaves one out."""
    fields = {k: v for k, v in {**new_erp().form, **changed}.items() if v is not None}
    return Sent(urlencode(fields).encode())


def raw(body: str, **headers: str) -> Sent:
    return Sent(body.encode(), headers={k.replace("_", "-"): v for k, v in headers.items()})


def of_client(**fields: Any) -> Sent:
    return login_of(new_erp(**fields))


def with_secret(**fields: Any) -> Sent:
    erp = new_erp()
    erp.system_user.credentials.update(**fields)
    return login_of(erp)


def over_its_limit() -> Sent:
    erp = new_erp()
    for _ in range(12):
        erp.login()
    return login_of(erp)


def swapped() -> Sent:
    erp = new_erp()
    return login_of(Erp(erp.client_secret, erp.client_id))


def acting_for(taxpayer: object, erp: Erp | None = None) -> Sent:
    erp = erp or new_erp(taxpayer=make.intermediary().taxpayer)
    return replace(login_of(erp), headers={"onbehalfof": str(taxpayer)})


def limited(**limits: str) -> Sent:
    granted = make.permission(codes=[SUBMIT])
    erp = new_erp(taxpayer=granted.intermediary.taxpayer, **limits)
    return acting_for(granted.taxpayer.identifier, erp)


def with_permission(role: dict[str, Any] | None = None, **fields: Any) -> Sent:
    granted = make.permission(**fields)
    type(granted.intermediary).objects.filter(pk=granted.intermediary.pk).update(**role or {})
    return acting_for(granted.taxpayer.identifier, new_erp(taxpayer=granted.intermediary.taxpayer))


class Row(NamedTuple):
    """A reason, what it answers, and how it is provoked: each with a part of the description.

    The first one is the example of its page (tests/developers/test_errors.py).
    """

    reason: str
    status: int
    error: str
    fixed_by: str
    headers: dict[str, str]
    provoked: dict[str, Callable[[], Sent]]


BLOCKED = {"blocked_at": NOW - DAY, "blocked_by": "officer", "blocked_reason": "abuse"}
PAST: dict[str, Any] = {"valid_from": NOW - 2 * DAY}
LIMITED = {"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": MATCHED[EXPIRES_AT]}
ROWS = [
    Row("method_not_allowed", 405, "invalid_request", DEVELOPER, {"Allow": "POST"}, {
        "takes POST": lambda: Sent(b"", method="GET"),
        "POST only": lambda: Sent(b"", method="TRACE"),
    }),
    Row("malformed_request", 400, "invalid_request", DEVELOPER, {}, {
        "the parameter scope is sent more than once": lambda: raw("scope=a&scope=b"),
        "application/x-www-form-urlencoded": lambda: raw("{}", Content_Type="application/json"),
        "urlencoded": lambda: raw("a=b", Content_Type=""),
        "charset": lambda: raw(
            "a=b", Content_Type="application/x-www-form-urlencoded; charset=utf-16"),
        "longer than 16384": lambda: Sent(b"a=" + b"b" * 49_152, parts=5),
        "both": lambda: raw("client_id=x", Authorization="Basic YTpi"),
    }),
    Row("missing_parameter", 400, "invalid_request", DEVELOPER, {}, {
        "The parameter client_secret is missing": lambda: form(client_secret=None),
        "The parameter grant_type is missing": lambda: form(grant_type=None),
        "The parameter client_id is missing": lambda: form(client_id=""),
    }),
    Row("unsupported_grant_type", 400, "unsupported_grant_type", DEVELOPER, {}, {
        "client_credentials": lambda: form(grant_type="refresh_token"),
        "client_credentials.": lambda: form(grant_type="CLIENT_CREDENTIALS"),
    }),
    Row("malformed_on_behalf_of", 400, "invalid_request", DEVELOPER, {}, {
        "under another name": lambda: replace(form(), headers={"On-Behalf-Of": "C1"}),
        "it is empty": lambda: acting_for(""),
        "holds a list": lambda: acting_for("C1234567890,C1234567890"),
        "TIN does not": lambda: acting_for("a" * 5000),
        "letters outside": lambda: acting_for("\u00c71234567890"),
    }),
    Row("malformed_credentials", 400, "invalid_client", OPERATOR, {}, {
        "client_secret is cut off": lambda: form(client_secret=new_client_secret("test")[:-5]),
        "client_id has blanks": lambda: form(client_id=" " + new_client_id("test")),
        "client_secret has blanks": lambda: form(client_secret=new_client_secret("test") + "\n"),
        "client_id and client_secret are swapped": swapped,
        "client_secret is a placeholder": lambda: form(client_secret="<your-secret>"),
        "client_secret belongs to the other environment":
            lambda: form(client_secret=new_client_secret("live")),
        "client_id is not of this service": lambda: form(client_id="not-ours"),
    }),
    Row("invalid_credentials", 400, "invalid_client", OPERATOR, {}, {
        "client_id or client_secret is wrong": lambda: form(client_id=new_client_id("test")),
        "client_secret is wrong": lambda: form(client_secret=new_client_secret("test")),
    }),
    Row("secret_expired", 400, "invalid_client", ROTATES, MATCHED, {
        "expired on 20": lambda: with_secret(created_at=NOW - 9 * DAY, expires_at=NOW - DAY),
    }),
    Row("secret_revoked", 400, "invalid_client", ROTATES, MATCHED, {
        "revoked on 20": lambda: with_secret(revoked_at=NOW - DAY, slot=None),
    }),
    Row("source_network_not_allowed", 400, "invalid_client", OPERATOR, MATCHED, {
        "from another address: 127.0.0.1. ":
            lambda: with_secret(allowed_networks="203.0.113.0/24"),
    }),
    Row("dpop_proof_missing", 400, "invalid_dpop_proof", DEVELOPER, MATCHED | NONCE, {
        "has no header DPoP": lambda: of_client(token_binding="dpop"),
    }),
    Row("certificate_missing", 400, "invalid_request", DEVELOPER, MATCHED, {
        "mtls_endpoint_aliases": lambda: of_client(token_binding="tls"),
    }),
    Row("rate_limited", 429, "invalid_request", DEVELOPER,
        {**MATCHED, **LIMITED, "Retry-After": r"[1-9]\d?"}, {"reuse a token": over_its_limit}),
    Row("system_user_blocked", 400, "unauthorised_client", AUTHORITY, MATCHED, {
        "blocked on 20": lambda: of_client(**BLOCKED),
    }),
    Row("system_user_expired", 400, "unauthorised_client", AUTHORITY, MATCHED, {
        "expired on 20": lambda: of_client(expires_at=NOW - DAY),
    }),
    Row("taxpayer_inactive", 400, "unauthorised_client", AUTHORITY, MATCHED, {
        "not active": lambda: of_client(taxpayer__is_active=False),
    }),
    Row("not_an_intermediary", 400, "unauthorised_client", AUTHORITY, MATCHED, {
        "not registered as an intermediary":
            lambda: acting_for(make.taxpayer().identifier, new_erp()),
    }),
    Row("intermediary_inactive", 400, "unauthorised_client", AUTHORITY, MATCHED, {
        "active since 20": lambda: with_permission({"active_until": NOW - DAY}),
        "is not active.": lambda: with_permission({"is_active": False}),
    }),
    Row("own_taxpayer_not_allowed", 400, "unauthorised_client", DEVELOPER, MATCHED, {
        "only on behalf of other taxpayers": lambda: of_client(only_on_behalf=True),
        "must send the header onbehalfof": lambda: of_client(allowed_permissions=VIEW),
        "also when a library renews": lambda: of_client(allowed_taxpayers="C0000000001"),
    }),
    Row("taxpayer_not_allowed", 400, "unauthorised_client", ADMINISTRATOR, MATCHED, {
        "certain taxpayers only": lambda: limited(allowed_taxpayers="C0000000001"),
    }),
    Row("permissions_not_allowed", 400, "unauthorised_client", ADMINISTRATOR, MATCHED, {
        "limited to some permissions": lambda: limited(allowed_permissions=VIEW),
    }),
    Row("no_permission", 400, "invalid_grant", REPRESENTED, MATCHED, {
        "granted this intermediary no permission":
            lambda: acting_for(make.permission().taxpayer.identifier),
    }),
    Row("permission_not_yet_valid", 400, "invalid_grant", REPRESENTED, MATCHED, {
        "valid only from 20": lambda: with_permission(valid_from=NOW + DAY),
    }),
    Row("permission_expired", 400, "invalid_grant", REPRESENTED, MATCHED, {
        "expired on 20": lambda: with_permission(**PAST, valid_until=NOW - DAY),
    }),
    Row("permission_revoked", 400, "invalid_grant", REPRESENTED, MATCHED, {
        "revoked on 20": lambda: with_permission(**PAST, revoked_at=NOW - DAY),
    }),
    Row("invalid_scope", 400, "invalid_scope", DEVELOPER, MATCHED, {
        "A scope that was asked for is unknown": lambda: form(scope="InvoicingAPI Unknown"),
        "or there is not exactly one space": lambda: form(scope="InvoicingAPI\tInvoicingAPI"),
        "none of the scopes that it asks for": lambda: of_client(scopes=""),
    }),
]  # fmt: skip
# Of settings and outages, below; and of proofs: tests/dpop.
ELSEWHERE = {
    "insecure_transport": (400, "invalid_request"),
    "temporarily_unavailable": (503, "temporarily_unavailable"),
    "server_error": (500, "server_error"),
    "invalid_dpop_proof": (400, "invalid_dpop_proof"),
    "use_dpop_nonce": (400, "use_dpop_nonce"),
}
CASES = [
    pytest.param(row, says, id=f"{row.reason}: {says}") for row in ROWS for says in row.provoked
]


def as_response(answer: Answer) -> HttpResponse:
    return HttpResponse(
        answer.body, status=answer.status, reason=answer.reason, headers=answer.headers
    )


def test_the_table_has_every_reason() -> None:
    table = {row.reason: (row.status, row.error) for row in ROWS} | ELSEWHERE
    assert table == {reason: (row.status, row.error) for reason, row in REFUSALS.items()}


@committed
@both
@pytest.mark.parametrize(("row", "says"), CASES)
def test_each_reason_has_its_answer_its_record_and_its_line(
    send: Send, row: Row, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = row.provoked[says]()
    caplog.set_level(logging.INFO, "tokens.login")
    caplog.clear()
    before = LoginEvent.objects.count()
    response = as_response(send(sent))
    assert_refused(
        response, reason=row.reason, says=says, fixed_by=row.fixed_by, headers=row.headers
    )
    assert LoginEvent.objects.count() == before + (row.reason != "rate_limited")
    # A failure counts for its pair and its address, what comes before a secret for its address.
    refused = 0 if EXPIRES_AT in row.headers else 1
    counted = 2 if REFUSALS[row.reason].counts_as_failure else refused
    assert FailureBucket.objects.count() == counted
    if row.reason != "rate_limited":
        (line,) = [vars(record) for record in caplog.records if record.name == "tokens.login"]
        found = (line["reference"], line["outcome"], line["source_address"])
        assert found == (response["correlationId"], row.reason, "127.0.0.1")


@committed
@both
def test_an_error_of_ours_says_nothing_about_itself(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_request: object) -> None:
        raise ZeroDivisionError("our secret detail")

    monkeypatch.setattr(toolkit, "decide", fail)
    response = as_response(send(form()))
    assert b"detail" not in response.content
    assert_refused(
        response,
        reason="server_error",
        says="our side",
        fixed_by="report the reference",
        headers=MATCHED,
    )


@committed
@both
def test_only_a_trusted_proxy_may_say_that_it_was_https(send: Send, settings: Settings) -> None:
    """Each case: tests/endpoint/test_proxies.py; one that may: tests/limits/test_rejections.py."""
    settings.AUTH_URL, settings.TRUSTED_PROXIES = "https://id.example.org", []
    sent = replace(form(), headers={"X-Forwarded-Proto": "https"})
    assert_refused(
        as_response(send(sent)), reason="insecure_transport", says="HTTPS", fixed_by=DEVELOPER
    )


# --- What is the same for all, and what it costs ------------------------------------------------
def without_reference(response: HttpResponse) -> tuple[str, list[tuple[str, str]]]:
    headers = {**response.headers, "correlationId": ""}
    body = response.content.decode().replace(response["correlationId"], "")
    return body, sorted(headers.items())


def test_unknown_id_and_wrong_secret_are_the_same_bytes_but_for_the_reference(
    erp: Erp, blocked: Erp
) -> None:
    wrong, elsewhere = new_client_secret("test"), new_erp()
    elsewhere.system_user.credentials.update(allowed_networks="203.0.113.0/24")
    answers = [
        erp.login(client_secret=wrong),
        elsewhere.login(client_secret=wrong),
        erp.login(client_id=new_client_id("test"), client_secret=wrong),
        erp.login(client_id=new_client_id("test")),  # a secret that is another client's
        # Nothing is told of a blocked user or a TIN.
        blocked.login(client_secret=wrong),
        blocked.login(client_secret=wrong, on_behalf_of="C9999999999"),
        blocked.login(client_secret=wrong, on_behalf_of=blocked.tin),
    ]
    assert len({str(without_reference(response)) for response in answers}) == 1


def test_unknown_taxpayer_inactive_taxpayer_and_no_permission_are_one_text(
    intermediary: Erp,
) -> None:
    inactive = {"intermediary": intermediary.role, "taxpayer__is_active": False}
    taxpayers = [
        make.taxpayer().identifier,
        make.permission(**inactive).taxpayer.identifier,
        "C0000000000",
    ]
    answers = [intermediary.login(on_behalf_of=str(taxpayer)) for taxpayer in taxpayers]
    assert {response.status_code for response in answers} == {400}
    assert len({without_reference(response)[0] for response in answers}) == 1
