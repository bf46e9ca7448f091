"""Which method a request uses, what it is looked up by, and what a failure is counted by. Pure."""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from taxpayers.credentials import hash_secret
from taxpayers.facts.local import SharedFacts
from taxpayers.facts.values import Facts, FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import Refused
from tests.client_auth.test_assertion_form import ISSUER, signed
from tests.client_auth.test_signatures import assertion, pair
from tests.endpoint.test_rules import CLIENT, SECRET
from tokens.calls import FailedAuthentication
from tokens.client_auth.assertion import JWT_BEARER, SentAssertion
from tokens.client_auth.authenticated import Method
from tokens.client_auth.certificate import CertificateHeaders, ClientCertificate
from tokens.client_auth.client_secret import ClientSecretCredentials, SentSecret
from tokens.client_auth.methods import (
    CheckedCredentials,
    authenticate,
    check_form,
    facts_query,
    read_credentials,
)
from tokens.client_auth.tls_client_auth import CertificateCredentials, SentCertificate
from tokens.operations.failures import check_failures, count_failure
from tokens.operations.node import Node
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
CLIENT_SECRET = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"
BASIC = "Basic Y2lfMTpjc18x"  # ci_1:cs_1
HEADERS = CertificateHeaders(client_cert="x", verified="SUCCESS")
HERE = "revocation"
SENT = SentSecret(Method.CLIENT_SECRET_POST, CLIENT_ID, CLIENT_SECRET)
BY_SECRET = ClientSecretCredentials(SENT.method, CLIENT_ID, hash_secret(CLIENT_SECRET))
CERTIFICATE = ClientCertificate("tls$a", "a-thumbprint", AT - HOUR, AT + HOUR)
BY_CERTIFICATE = CertificateCredentials(CLIENT_ID, CERTIFICATE)
FACTS = Facts(CLIENT, SECRET)
IN_FORM = SentSecret(Method.CLIENT_SECRET_POST, "ci_1", "cs_1")
IN_HEADER = SentSecret(Method.CLIENT_SECRET_BASIC, "ci_1", "cs_1")
ASSERTION = {"client_assertion": "a.b.c"}


@pytest.mark.parametrize(
    ("form", "authorization", "sent"),
    [
        ({}, "", SentCertificate("", HEADERS)),
        ({"client_id": "ci_1"}, "", SentCertificate("ci_1", HEADERS)),
        ({"client_id": "ci_1"}, "Bearer stale", SentCertificate("ci_1", HEADERS)),
        ({"client_id": "ci_1", "client_secret": "cs_1"}, "", IN_FORM),
        ({}, BASIC, IN_HEADER),
        ({}, "Basic Y2lfMTo=", replace(IN_HEADER, client_secret="")),
        (
            ASSERTION | {"client_assertion_type": JWT_BEARER},
            "",
            SentAssertion("", "a.b.c", JWT_BEARER),
        ),
        (ASSERTION, "", SentAssertion("", "a.b.c", "")),
        ({"client_assertion_type": JWT_BEARER}, "", SentAssertion("", "", JWT_BEARER)),
    ],
)
def test_a_certificate_counts_only_where_nothing_else_is_sent(
    form: dict[str, str], authorization: str, sent: Any
) -> None:
    assert read_credentials(form, authorization, HEADERS) == sent
    if not isinstance(sent, SentCertificate):
        assert read_credentials(form, authorization) == sent
    nothing = SentSecret(Method.CLIENT_SECRET_POST, "", "")
    assert read_credentials({}, "") == nothing, "a secret that is missing"


@pytest.mark.parametrize(
    ("form", "authorization"),
    [
        ({"client_assertion": "a", "client_secret": "x"}, ""),
        ({"client_assertion_type": JWT_BEARER, "client_secret": "x"}, ""),
        ({"client_assertion": "a"}, BASIC),
        ({"client_assertion": "a", "client_assertion_type": "saml2-bearer"}, ""),
    ],
)
def test_two_methods_or_an_unknown_one_are_refused(
    form: dict[str, str], authorization: str
) -> None:
    with pytest.raises(Refused) as refused:
        read_credentials(form, authorization)
    assert refused.value.reason == "malformed_request"


@pytest.mark.parametrize(
    ("sent", "parameter"),
    [
        (replace(SENT, client_id="ci_test_cut"), "client_id"),
        (replace(SENT, client_secret="cs_test_cut"), "client_secret"),
        (replace(SENT, client_id=CLIENT_SECRET), "client_id"),
        (SentCertificate("ci_test_cut", HEADERS), "client_id"),
        (SentCertificate(CLIENT_ID, HEADERS), "client_certificate"),
        (SentAssertion("", "a.b.c", JWT_BEARER), "client_assertion"),
        (SentAssertion("", signed(iss='"ci_test"', sub='"ci_test"'), JWT_BEARER), "client_id"),
    ],
)
def test_what_was_never_issued_is_refused_by_its_form(sent: Any, parameter: str) -> None:
    with pytest.raises(Refused) as refused:
        check_form(sent, "test", ISSUER)
    assert (refused.value.reason, refused.value.parameter) == ("malformed_credentials", parameter)


@pytest.mark.parametrize(
    ("credentials", "lookup"),
    [
        (BY_SECRET, hash_secret(CLIENT_SECRET)),
        (assertion(pair("EdDSA")), f"kid${pair('EdDSA').kid}"),
        (BY_CERTIFICATE, "tls$a"),
    ],
    ids=["secret", "key", "certificate"],
)
def test_each_is_looked_up_by_its_own_name(credentials: CheckedCredentials, lookup: str) -> None:
    for other in (None, TaxpayerId("C2000000002")):
        assert facts_query(credentials, other) == FactsQuery(credentials.client_id, lookup, other)


def test_what_stands_for_the_very_thing_that_was_sent() -> None:
    """By it a denial is remembered: of a right secret it is the secret itself."""
    assert BY_SECRET.denial_key == BY_SECRET.lookup
    again = assertion(pair("EdDSA"), signed=b"another")
    assert again.lookup == assertion(pair("EdDSA")).lookup
    assert again.denial_key != assertion(pair("EdDSA")).denial_key
    assert BY_CERTIFICATE.denial_key == "x5t$a-thumbprint"


def test_a_certificate_that_has_ended_since_the_connection_began_proves_nothing() -> None:
    for at in (AT - 2 * HOUR, AT + 2 * HOUR):
        for facts in (FACTS, None):
            with pytest.raises(Refused) as refused:
                authenticate(BY_CERTIFICATE, facts, at)
            assert refused.value.reason == "malformed_credentials"
    with pytest.raises(Refused) as refused:
        authenticate(BY_CERTIFICATE, None, AT)
    assert refused.value.parameter == "client_certificate"


def arrival(address: str = "192.0.2.1", at: datetime = AT) -> Arrival:
    return Arrival(uuid4(), "", at, address, "")


def counted(
    node: Node, credentials: CheckedCredentials = BY_SECRET, result: Throttle | None = None
) -> FailedAuthentication:
    """What a failure asks of the database, which answers with `result`."""
    wrong = Refused(ProtocolReason.INVALID_CREDENTIALS)
    step: Generator[Any, Any, None] = count_failure(node, arrival(), credentials, HERE, wrong)
    asked = next(step)
    assert isinstance(asked, FailedAuthentication)
    with pytest.raises(StopIteration if result is None else RateLimited) as ended:
        step.send(result)
    if isinstance(ended.value, RateLimited):
        assert (ended.value.throttle, ended.value.cause) == (result, ThrottleCause.FAILURES)
    return asked


@pytest.mark.parametrize(
    "credentials", [BY_SECRET, assertion(pair("EdDSA")), BY_CERTIFICATE], ids=lambda c: c.method
)
def test_a_failure_that_must_wait_is_denied_until_then_and_no_other_is(
    credentials: CheckedCredentials, tmp_path: Path
) -> None:
    node = Node(SharedFacts(tmp_path, max_bytes=2**20, key=b""))
    check_failures(node, arrival(), credentials, HERE)
    counted(node, credentials)
    check_failures(node, arrival(), credentials, HERE)  # it did not have to wait
    throttle = Throttle(AT + HOUR)
    counted(node, credentials, throttle)
    with pytest.raises(RateLimited) as limited:
        check_failures(node, arrival(), credentials, HERE)
    assert (limited.value.throttle, limited.value.cause) == (throttle, ThrottleCause.FAILURES)
    check_failures(node, arrival("192.0.2.2"), credentials, HERE)
    check_failures(node, arrival(), credentials, "introspection")
    check_failures(node, arrival(), replace(BY_SECRET, lookup=hash_secret("cs_test_right")), HERE)
    check_failures(node, arrival(), replace(BY_SECRET, client_id="ci_test_other"), HERE)
    check_failures(node, arrival(at=AT + HOUR), credentials, HERE)
