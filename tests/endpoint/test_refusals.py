"""Every row of the contract's refusal table: the whole answer, its headers and its record."""

import json
from datetime import UTC, datetime, timedelta
from datetime import timezone as dt_timezone
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from taxpayers.rules import Refused, RegistryReason
from tests.support.erp import (
    FORM,
    PATH,
    Erp,
    assert_every_answer,
    assert_refused,
    assert_unavailable,
    new_erp,
    post,
)
from tests.support.factories import (
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)
from tests.support.outages import database_out_of_reach, writing_fails
from tests.support.queries import statements_sent
from tokens.answers.description import describe
from tokens.http import error_body, rfc3339
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

pytestmark = pytest.mark.django_db

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
DEVELOPER, OPERATOR, AUTHORITY = "developer of the ERP", "operator of the ERP", "tax authority"
REPRESENTED, ROTATES = "represented taxpayer", "person who rotates the secrets"
EXPIRES_AT = "X-Client-Secret-Expires-At"
MATCHED = {
    EXPIRES_AT: r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "X-Rate-Limit-Limit": "12",
    "X-Rate-Limit-Remaining": r"\d+",
}
SPECIFIED = {
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorised_client",
    "unsupported_grant_type",
    "invalid_scope",
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


def test_a_row_carries_a_date_exactly_where_its_text_names_one() -> None:
    for reason, row in REFUSALS.items():
        assert row.has_date == ("{since}" in row.text), reason
        assert "{since}" not in row.without_date, reason


def test_staff_and_the_client_are_told_the_same_person_who_can_fix_it() -> None:
    for reason, row in REFUSALS.items():
        public = (row.text + row.without_date + row.without_detail).replace("this ERP", "the ERP")
        if row.check is not None and reason != ProtocolReason.MALFORMED_CREDENTIALS:
            assert row.fixed_by.lower() in public.lower(), reason


# --- Public texts -------------------------------------------------------------------------------


def test_a_description_has_only_the_characters_of_the_rfc() -> None:
    assert error_body("e", 'a"\\\xe9\n') == {"error": "e", "error_description": "a????"}
    refused = Refused(ProtocolReason.MALFORMED_REQUEST, detail='"\\\xe9')
    assert describe(refused).startswith("The request is malformed: ???. ")


def test_an_unknown_scope_is_not_repeated() -> None:
    described = describe(Refused(RegistryReason.INVALID_SCOPE, detail="Secret"))
    assert described.startswith("A scope that was asked for is unknown, or there is not exactly ")
    assert "Secret" not in described
    nothing_left = describe(Refused(RegistryReason.INVALID_SCOPE))
    assert nothing_left.startswith("This client may have none of the scopes")


def test_a_date_is_told_in_the_time_zone_of_the_authority() -> None:
    since = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
    with timezone.override("Asia/Kuala_Lumpur"):
        text = describe(Refused(RegistryReason.SECRET_EXPIRED, since=since))
    assert text.startswith("This client_secret expired on 2026-11-22 04:00:00 (UTC+0800). ")


def test_a_moment_in_a_header_is_in_utc_to_the_second() -> None:
    moment = datetime(2026, 11, 22, 4, 0, 0, 999_999, tzinfo=dt_timezone(timedelta(hours=8)))
    assert rfc3339(moment) == "2026-11-21T20:00:00Z"


# --- Each reason --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options", "trace"])
def test_any_method_but_post_is_refused(method: str) -> None:
    response = getattr(Client(), method)(PATH)
    assert response.status_code == 405
    assert response["Allow"] == "POST"
    if method != "head":
        assert_refused(
            response,
            reason="method_not_allowed",
            status=405,
            error="invalid_request",
            says="POST",
            fixed_by=DEVELOPER,
            headers={"Allow": "POST"},
        )


@override_settings(AUTH_URL="https://id.example.org")
def test_http_is_refused_where_auth_url_is_https(erp: Erp) -> None:
    assert_refused(
        erp.login(),
        reason="insecure_transport",
        status=400,
        error="invalid_request",
        says="HTTPS",
        fixed_by=DEVELOPER,
    )


@override_settings(AUTH_URL="https://id.example.org", TRUSTED_PROXIES=["127.0.0.1"])
def test_a_trusted_proxy_may_say_that_it_was_https(erp: Erp) -> None:
    assert erp.login(headers={"X-Forwarded-Proto": "https"}).status_code == 200
    assert erp.login(headers={"X-Forwarded-Proto": "http"}).status_code == 400


@override_settings(AUTH_URL="https://id.example.org")
def test_nobody_else_may_say_that_it_was_https(erp: Erp) -> None:
    assert erp.login(headers={"X-Forwarded-Proto": "https"}).status_code == 400


@pytest.mark.parametrize(
    ("body", "sent", "says"),
    [
        ("{}", {"content_type": "application/json"}, FORM),
        ("a=b", {"content_type": ""}, FORM),
        (b"a=b", {"content_type": f"{FORM}; charset=utf-16"}, "charset"),
        ("a=" + "b" * 16384, {}, "16384"),
        ("client_id=%zz", {}, "percent"),
        ("client_id=%ff", {}, "UTF-8"),
        (b"client_id=\xc3\xa9", {}, "percent-encoded"),
        ("grant_type=a&grant_type=a", {}, "grant_type is sent more than once"),
        ("client_id=a&client_id=&client_id=a", {}, "client_id is sent more than once"),
        ("foo=1&foo=2", {}, "a parameter is sent more than once"),
        ("&".join(f"p{n}=1" for n in range(101)), {}, "more than 100"),
        ("a=b", {"query": "client_secret=x"}, "query string"),
        ("a=b", {"query": "client_id=x"}, "query string"),
        ("a=b", {"headers": {"Authorization": "Basic !!!"}}, "base64"),
        ("a=b", {"headers": {"Authorization": "Basic YWJj"}}, "base64"),
        ("a=b", {"headers": {"Authorization": "Basic"}}, "base64"),
        ("client_secret=x", {"headers": {"Authorization": "Basic YTpi"}}, "both"),
        ("client_id=x", {"headers": {"Authorization": "Basic YTpi"}}, "both"),
    ],
)
def test_a_malformed_request_is_refused_and_the_fault_is_named(
    body: str | bytes, sent: dict[str, object], says: str
) -> None:
    assert_refused(
        post(body, **sent),  # type: ignore[arg-type]
        reason="malformed_request",
        status=400,
        error="invalid_request",
        says=says,
        fixed_by=DEVELOPER,
    )


@pytest.mark.parametrize("form", ["scope=&scope=InvoicingAPI&scope", "foo=&foo=&client_id="])
def test_a_parameter_without_a_value_is_as_if_left_out(erp: Erp, form: str) -> None:
    response = post(f"{form}&{urlencode(erp.form)}")
    assert response.status_code == 200, response.content


@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_or_empty_parameter_is_named(erp: Erp, name: str, value: str | None) -> None:
    assert_refused(
        erp.login(**{name: value}),
        reason="missing_parameter",
        status=400,
        error="invalid_request",
        says=f"The parameter {name} is missing",
        fixed_by=DEVELOPER,
    )


@pytest.mark.parametrize(
    "grant_type", ["password", "authorization_code", "refresh_token", "CLIENT_CREDENTIALS", "x"]
)
def test_any_other_grant_type_is_refused(erp: Erp, grant_type: str) -> None:
    assert_refused(
        erp.login(grant_type=grant_type),
        reason="unsupported_grant_type",
        status=400,
        error="unsupported_grant_type",
        says="client_credentials",
        fixed_by=DEVELOPER,
    )


@pytest.mark.parametrize(
    "header",
    [
        *("", " ", "C1,C2", "C1234567890,C1234567890", "C12", "C1234567890:", ":12345"),
        *("C12 345", "C1234567890:202:1", "\u00c71234567890", "C1234567890 :12345", "a" * 5000),
        "\u017f1234567890",  # a letter that becomes an S in upper case
    ],
)
def test_a_malformed_on_behalf_of_never_falls_back_to_a_taxpayer_login(
    erp: Erp, header: str
) -> None:
    response = post("&".join(f"{k}={v}" for k, v in erp.form.items()), HTTP_ONBEHALFOF=header)
    assert_refused(
        response,
        reason="malformed_on_behalf_of",
        status=400,
        error="invalid_request",
        says="onbehalfof",
        fixed_by=DEVELOPER,
    )


def test_credentials_of_the_wrong_form_are_named_without_a_query(erp: Erp) -> None:
    live = new_client_secret("live")
    for form, says in (
        ({"client_secret": erp.client_secret[:-5]}, "client_secret is cut off"),
        ({"client_id": f" {erp.client_id}"}, "client_id has blanks"),
        ({"client_secret": f"{erp.client_secret}\n"}, "client_secret has blanks"),
        (
            {"client_id": erp.client_secret, "client_secret": erp.client_id},
            "client_id and client_secret are swapped",
        ),
        ({"client_secret": "<your-secret>"}, "client_secret is a placeholder"),
        ({"client_secret": live}, "client_secret belongs to the other environment"),
        ({"client_id": "not-ours"}, "client_id is not of this service"),
    ):
        with statements_sent() as sent:
            response = erp.login(**form)
        words = [word for word in sent if word not in ("SAVEPOINT", "RELEASE")]
        # Its count and its record, nothing of the registry.
        is_sqlite = connection.vendor == "sqlite"
        assert words == (["SELECT", "INSERT", "INSERT"] if is_sqlite else ["WITH"])
        assert_refused(
            response,
            reason="malformed_credentials",
            status=400,
            error="invalid_client",
            says=says,
            fixed_by=OPERATOR,
        )


def test_unknown_id_and_wrong_secret_are_the_same_bytes_but_for_the_reference(erp: Erp) -> None:
    secret = new_client_secret("test")
    wrong = erp.login(client_secret=secret)
    unknown = erp.login(client_id=new_client_id("test"), client_secret=secret)
    stored = erp.login(client_id=new_client_id("test"))
    for response in (wrong, unknown, stored):
        assert_refused(
            response,
            reason="invalid_credentials",
            status=400,
            error="invalid_client",
            says="client_id or client_secret is wrong",
            fixed_by=OPERATOR,
        )
    bodies = [r.content.decode().replace(r["correlationId"], "") for r in (wrong, unknown, stored)]
    assert bodies[0] == bodies[1] == bodies[2]
    headers = [sorted({**r.headers, "correlationId": ""}.items()) for r in (wrong, unknown, stored)]
    assert headers[0] == headers[1] == headers[2]


def test_a_wrong_secret_tells_nothing_about_a_blocked_user_or_a_tin(blocked: Erp) -> None:
    wrong = new_client_secret("test")
    plain = blocked.login(client_secret=wrong)
    on_behalf = blocked.login(client_secret=wrong, on_behalf_of="C9999999999")
    known = blocked.login(client_secret=wrong, on_behalf_of=blocked.tin)
    assert {json.loads(r.content)["error"] for r in (plain, on_behalf, known)} == {"invalid_client"}
    texts = {r.content.decode().replace(r["correlationId"], "") for r in (plain, on_behalf, known)}
    assert len(texts) == 1


def test_the_stored_value_of_a_secret_never_logs_in(erp: Erp) -> None:
    stored = erp.system_user.credentials.get().lookup
    assert erp.login(client_secret=stored).status_code == 400


def test_an_expired_secret_is_told_with_its_date(erp: Erp) -> None:
    erp.system_user.credentials.update(created_at=NOW - 9 * DAY, expires_at=NOW - DAY)
    assert_refused(
        erp.login(),
        reason="secret_expired",
        status=400,
        error="invalid_client",
        says="expired on 20",
        fixed_by=ROTATES,
        headers=MATCHED,
    )


def test_a_revoked_secret_is_told_with_its_date(erp: Erp) -> None:
    erp.system_user.credentials.update(revoked_at=NOW - DAY, slot=None)
    assert_refused(
        erp.login(),
        reason="secret_revoked",
        status=400,
        error="invalid_client",
        says="revoked on 20",
        fixed_by=ROTATES,
        headers=MATCHED,
    )


def test_the_thirteenth_login_of_a_minute_is_refused_and_writes_nothing(erp: Erp) -> None:
    remaining = [erp.login()["X-Rate-Limit-Remaining"] for _ in range(12)]
    assert remaining == [str(n) for n in range(11, -1, -1)]
    events = LoginEvent.objects.count()
    for _ in range(3):
        assert_refused(
            erp.login(),
            reason="rate_limited",
            status=429,
            error="invalid_request",
            says="reuse a token",
            fixed_by=DEVELOPER,
            headers={
                **MATCHED,
                "X-Rate-Limit-Remaining": "0",
                "X-Rate-Limit-Reset": MATCHED[EXPIRES_AT],
                "Retry-After": r"[1-9]\d?",
            },
        )
    assert LoginEvent.objects.count() == events


def test_a_client_over_its_limit_costs_no_query(
    erp: Erp, django_assert_num_queries: object
) -> None:
    for _ in range(13):
        erp.login()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert erp.login().status_code == 429


def test_a_blocked_system_user_is_told_with_the_date(blocked: Erp) -> None:
    assert_refused(
        blocked.login(),
        reason="system_user_blocked",
        status=400,
        error="unauthorised_client",
        says="blocked on 20",
        fixed_by=AUTHORITY,
        headers=MATCHED,
    )


def test_an_expired_system_user_is_told_with_the_date(erp: Erp) -> None:
    erp.system_user.expires_at = NOW - DAY
    erp.system_user.save()
    assert_refused(
        erp.login(),
        reason="system_user_expired",
        status=400,
        error="unauthorised_client",
        says="expired on 20",
        fixed_by=AUTHORITY,
        headers=MATCHED,
    )


def test_an_inactive_taxpayer_gets_no_token(erp: Erp) -> None:
    erp.system_user.taxpayer.is_active = False
    erp.system_user.taxpayer.save()
    assert_refused(
        erp.login(),
        reason="taxpayer_inactive",
        status=400,
        error="unauthorised_client",
        says="not active",
        fixed_by=AUTHORITY,
        headers=MATCHED,
    )


def test_only_an_intermediary_may_act_for_others(erp: Erp) -> None:
    other = TaxpayerFactory.create()
    assert_refused(
        erp.login(on_behalf_of=str(other.identifier)),
        reason="not_an_intermediary",
        status=400,
        error="unauthorised_client",
        says="not registered as an intermediary",
        fixed_by=AUTHORITY,
        headers=MATCHED,
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [({"is_active": False}, "is not active."), ({"active_until": NOW - DAY}, "active since 20")],
)
def test_an_inactive_intermediary_is_refused(
    intermediary: Erp, change: dict[str, object], says: str
) -> None:
    permission = GrantedPermissionFactory.create(intermediary=intermediary.role)
    type(permission.intermediary).objects.update(**change)
    assert_refused(
        intermediary.login(on_behalf_of=str(permission.taxpayer.identifier)),
        reason="intermediary_inactive",
        status=400,
        error="unauthorised_client",
        says=says,
        fixed_by=AUTHORITY,
        headers=MATCHED,
    )


def test_unknown_taxpayer_inactive_taxpayer_and_no_permission_are_one_text(
    intermediary: Erp,
) -> None:
    role = intermediary.role
    without = TaxpayerFactory.create()
    inactive = GrantedPermissionFactory.create(
        intermediary=role, taxpayer__is_active=False
    ).taxpayer
    responses = [
        intermediary.login(on_behalf_of=str(tin))
        for tin in (without.identifier, inactive.identifier, "C0000000000")
    ]
    for response in responses:
        assert_refused(
            response,
            reason="no_permission",
            status=400,
            error="invalid_grant",
            says="granted this intermediary no permission",
            fixed_by=REPRESENTED,
            headers=MATCHED,
        )
    assert len({r.content.decode().replace(r["correlationId"], "") for r in responses}) == 1


def test_a_permission_given_to_another_intermediary_does_not_count(intermediary: Erp) -> None:
    permission = GrantedPermissionFactory.create(intermediary=IntermediaryFactory.create())
    response = intermediary.login(on_behalf_of=str(permission.taxpayer.identifier))
    assert json.loads(response.content)["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("dates", "reason", "says"),
    [
        ({"valid_from": NOW + DAY}, "permission_not_yet_valid", "valid only from 20"),
        (
            {"valid_from": NOW - 2 * DAY, "valid_until": NOW - DAY},
            "permission_expired",
            "expired on 20",
        ),
        (
            {"valid_from": NOW - 2 * DAY, "revoked_at": NOW - DAY},
            "permission_revoked",
            "revoked on 20",
        ),
    ],
)
def test_a_permission_out_of_force_is_told_with_the_date(
    intermediary: Erp, dates: dict[str, datetime], reason: str, says: str
) -> None:
    permission = GrantedPermissionFactory.create(intermediary=intermediary.role, **dates)
    assert_refused(
        intermediary.login(on_behalf_of=str(permission.taxpayer.identifier)),
        reason=reason,
        status=400,
        error="invalid_grant",
        says=says,
        fixed_by=REPRESENTED,
        headers=MATCHED,
    )


@pytest.mark.parametrize(
    "scope",
    [
        *("Unknown", "InvoicingAPI Unknown", "Invoicing\\API", '"', "é", '"InvoicingAPI"'),
        # Not one space between two (RFC 6749 section 3.3).
        *("InvoicingAPI\tInvoicingAPI", "InvoicingAPI\nInvoicingAPI", "InvoicingAPI\r\n"),
        *("InvoicingAPI  InvoicingAPI", " InvoicingAPI", "InvoicingAPI ", " ", "\t", "\0"),
        *("InvoicingAPI\xa0InvoicingAPI", "InvoicingAPI\u2003InvoicingAPI", "InvoicingAPI\x7f"),
        *("InvoicingAPI,InvoicingAPI", "InvoicingAPI\x1fInvoicingAPI", "invoicingapi"),
    ],
)
def test_an_unknown_scope_and_a_wrong_separator_are_refused(erp: Erp, scope: str) -> None:
    assert_refused(
        erp.login(scope=scope),
        reason="invalid_scope",
        status=400,
        error="invalid_scope",
        says="A scope that was asked for is unknown, or there is not exactly one space",
        fixed_by=DEVELOPER,
        headers=MATCHED,
    )


def test_nothing_left_of_the_scopes_asked_for_is_refused() -> None:
    erp = new_erp(scopes="")
    assert_refused(
        erp.login(),
        reason="invalid_scope",
        status=400,
        error="invalid_scope",
        says="none of the scopes that it asks for",
        fixed_by=DEVELOPER,
        headers=MATCHED,
    )


@pytest.mark.parametrize("logins_before", [0, 1])
def test_a_database_out_of_reach_is_a_503_and_no_token(erp: Erp, logins_before: int) -> None:
    assert [erp.login().status_code for _ in range(logins_before)] == [200] * logins_before
    with database_out_of_reach():
        response = erp.login()
    # A node that has met this secret knows until when it is valid.
    is_known = logins_before > 0 and connection.vendor == "postgresql"
    assert_unavailable(response, {EXPIRES_AT: MATCHED[EXPIRES_AT]} if is_known else {})


@pytest.mark.django_db(transaction=True)
def test_no_record_no_token(erp: Erp) -> None:
    with writing_fails("login_events"):
        response = erp.login()
    assert response.status_code == 503
    assert b"access_token" not in response.content
    assert RateLimitCounter.objects.get().used == 0


def test_an_error_of_ours_says_nothing_about_itself(erp: Erp) -> None:
    with patch(
        "tokens.operations.toolkit.decide", side_effect=ZeroDivisionError("our secret detail")
    ):
        response = erp.login()
    assert b"detail" not in response.content
    assert_refused(
        response,
        reason="server_error",
        status=500,
        error="server_error",
        says="our side",
        fixed_by="report the reference",
        headers=MATCHED,
    )


@pytest.mark.parametrize("path", [f"{PATH}/", "/connect", "/connect/token.json", "/Connect/Token"])
def test_only_the_exact_path_is_the_login(erp: Erp, path: str) -> None:
    response = Client().post(path, data=erp.form)
    assert response.status_code == 404
    assert "Location" not in response


def test_every_answer_is_json_whatever_accept_says(erp: Erp) -> None:
    for accept in ("text/html", "application/xml", "*/*;q=0", "nonsense"):
        assert_every_answer(erp.login(headers={"Accept": accept}))
        assert_every_answer(erp.login(client_id="x", headers={"Accept": accept}))
