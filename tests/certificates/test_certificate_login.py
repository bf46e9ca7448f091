"""A login with a client certificate: what it gets, what it is recorded as, what it cannot do."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from django.utils import timezone
from pytest_django import Settings

from taxpayers.certificates.names import NameKind
from taxpayers.models import Credential, RateLimitCounter, SystemUser
from taxpayers.services import (
    block_system_user,
    register_client_certificate,
    revoke_credential,
    use_client_secret,
)
from tests.certificates.addresses import STRANGER
from tests.certificates.certificate_erp import (
    BY,
    CertificateErp,
    authority,
    certificate,
    new_certificate_erp,
    nginx,
    rfc9440,
)
from tests.client_auth.key_erp import new_key_erp
from tests.support.erp import Erp, assert_every_answer, assert_refused, claims_of, new_erp
from tests.support.factories import CredentialFactory
from tests.support.queries import statements_sent
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

URI, HOST, EMAIL = "spiffe://example/erp", "erp.example.com", "erp@example.com"


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def now() -> dict[str, Any]:
    return {"by": BY, "at": timezone.now()}


def description(response: Any) -> str:
    text: str = json.loads(response.content)["error_description"]
    return text.partition(" Reference: ")[0]


def reason(response: Any) -> str:
    return LoginEvent.objects.get(pk=response["correlationId"]).reason


def assert_not_accepted(response: Any) -> None:
    assert_refused(
        response,
        reason="invalid_credentials",
        status=400,
        error="invalid_client",
        says="This certificate is not accepted",
        fixed_by="The operator of the ERP system",
    )


@pytest.mark.parametrize("headers", [nginx, rfc9440])
def test_a_verified_certificate_gives_a_token(erp: CertificateErp, headers: Any) -> None:
    response = erp.login(headers=headers(erp.issued))
    assert_every_answer(response)
    assert response.status_code == 200
    assert json.loads(response.content)["token_type"] == "Bearer"
    assert claims_of(response)["client_id"] == erp.client_id
    assert response["X-Rate-Limit-Remaining"] == "11"
    assert "X-Client-Secret-Expires-At" not in response


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (NameKind.SUBJECT_DN, "CN=sans,C=MY"),
        (NameKind.SAN_DNS, "ERP.example.com"),
        (NameKind.SAN_URI, URI),
        (NameKind.SAN_EMAIL, EMAIL),
    ],
)
def test_each_kind_of_name_can_be_registered(kind: NameKind, text: str) -> None:
    sans = [x509.DNSName(HOST), x509.UniformResourceIdentifier(URI), x509.RFC822Name(EMAIL)]
    issued = authority().issue("CN=sans,C=MY", *sans)
    erp = new_certificate_erp(issued, text, kind)
    assert erp.login().status_code == 200
    assert_not_accepted(erp.login(certificate()))


def test_a_renewed_certificate_with_the_same_name_needs_nothing(erp: CertificateErp) -> None:
    assert erp.login().status_code == 200
    renewed = authority().issue()
    assert renewed.der != erp.issued.der
    assert erp.login(renewed).status_code == 200


def test_the_event_and_the_last_use_name_the_certificate(erp: CertificateErp) -> None:
    row = erp.system_user.credentials.get()
    event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
    assert (event.client_id, event.secret_id) == (erp.client_id, row.pk)
    usage = RateLimitCounter.objects.get(system_user=erp.system_user)
    assert usage.last_use_of(row.pk) is not None
    assert (
        row.certificate_name
        == f"tls_client_auth_subject_dn:{erp.issued.certificate.subject.rfc4514_string()}"
    )


# --- Whom the node believes -----------------------------------------------------------------------


@pytest.mark.parametrize("headers", [nginx, rfc9440])
def test_from_anybody_but_a_trusted_proxy_it_is_as_if_absent(
    erp: CertificateErp, headers: Any
) -> None:
    absent = erp.login(headers={}, peer=STRANGER)
    forged = erp.login(headers=headers(erp.issued), peer=STRANGER)
    assert "The parameter client_secret is missing" in description(forged)
    assert description(forged) == description(absent)
    claimed = erp.login(more={"X-Forwarded-For": "127.0.0.1"}, peer=STRANGER)
    assert description(claimed) == description(absent)


def test_where_no_address_asks_for_certificates_none_is_believed(
    erp: CertificateErp, settings: Settings
) -> None:
    # A proxy that was set up before there were certificates passes on what clients send.
    settings.MTLS_URL = ""
    assert "The parameter client_secret is missing" in description(erp.login())


NEW_SECRET, OLD_SECRET = "n" * 40, "o" * 40


@pytest.mark.parametrize(
    ("sent", "is_believed"),
    [
        (NEW_SECRET, True),
        (OLD_SECRET, True),
        (None, False),
        ("", False),
        (NEW_SECRET[1:], False),
        (f"{NEW_SECRET}x", False),
        (f"{NEW_SECRET},{OLD_SECRET}", False),
        ("é", False),
    ],
)
@pytest.mark.parametrize("headers", [nginx, rfc9440])
def test_a_process_beside_the_proxy_cannot_report_a_certificate(
    erp: CertificateErp, headers: Any, sent: str | None, is_believed: bool, settings: Settings
) -> None:
    """Its address is that of a trusted proxy; the secret is what only proxy and node have."""
    settings.PROXY_SECRET = [NEW_SECRET, OLD_SECRET]
    more = {} if sent is None else {"X-Proxy-Secret": sent}
    response = erp.login(headers=headers(erp.issued), more=more)
    if is_believed:
        assert response.status_code == 200
    else:
        assert "The parameter client_secret is missing" in description(response)


@pytest.mark.parametrize("verified", ["NONE", "FAILED:certificate has expired", ""])
def test_a_certificate_that_the_proxy_has_not_verified_is_refused(
    erp: CertificateErp, verified: str
) -> None:
    for headers in (nginx(erp.issued, verified), rfc9440(erp.issued, verified)):
        response = erp.login(headers=headers)
        assert_refused(
            response,
            reason="malformed_credentials",
            status=400,
            error="invalid_client",
            says="was not accepted by the proxy of this service",
            fixed_by="The operator of the ERP system",
        )
        event = LoginEvent.objects.get(pk=response["correlationId"])
        assert (event.parameter, event.client_id) == ("client_certificate", erp.client_id)


def test_what_cannot_be_read_is_for_the_operators_of_the_service(erp: CertificateErp) -> None:
    text = rfc9440(erp.issued)["Client-Cert"]
    for wrong in (f"{text},{text}", ":AAAA:", "\0", "x"):
        headers = rfc9440(erp.issued) | {"Client-Cert": wrong}
        text_of_error = description(erp.login(headers=headers))
        assert "passed on a client certificate that cannot be read" in text_of_error
        assert "operators of this service" in text_of_error
    both = erp.login(more={"Client-Cert": text})
    assert "passed on two client certificates" in description(both)


def test_the_clock_of_the_database_is_asked_too() -> None:
    old = authority().issue("CN=old", begins=datetime(2026, 1, 1, tzinfo=UTC))
    early = authority().issue("CN=old", begins=timezone.now() + timedelta(hours=1))
    erp = new_certificate_erp(old)
    assert "has expired by the clock" in description(erp.login())
    assert "not yet valid by the clock" in description(erp.login(early))
    # It tells a stranger nothing of the registry.
    unknown = CertificateErp(SystemUser(client_id=new_erp().client_id), old)
    assert description(unknown.login()) == description(erp.login())


# --- One way in -----------------------------------------------------------------------------------


def test_a_client_with_a_certificate_has_no_other_path(erp: CertificateErp) -> None:
    # Also one that is still stored, because somebody wrote it by SQL.
    secret: Any = CredentialFactory.create(system_user=erp.system_user, slot=2)
    with_secret = Erp(erp.client_id, secret.clear)
    assert "client_id or client_secret is wrong" in description(with_secret.login())
    assert reason(erp.login(client_secret=secret.clear)) == "invalid_credentials"
    key = new_key_erp()
    Credential.objects.filter(system_user=key.system_user).update(
        system_user=erp.system_user, slot=None
    )
    key.system_user = erp.system_user
    assert reason(key.login()) == "invalid_credentials"


@pytest.mark.parametrize("method", ["", "private_key_jwt"])
def test_a_client_with_another_method_has_no_certificate_path(
    erp: CertificateErp, method: str
) -> None:
    users = SystemUser.objects.filter(pk=erp.system_user.pk)
    users.update(token_endpoint_auth_method=method)
    assert_not_accepted(erp.login())
    users.update(token_endpoint_auth_method="tls_client_auth")
    assert erp.login().status_code == 200


def test_what_looks_like_a_name_in_another_row_is_none(erp: CertificateErp) -> None:
    Credential.objects.update(certificate_name=None)
    assert_not_accepted(erp.login())


def test_a_secret_with_a_certificate_is_a_login_with_the_secret() -> None:
    secret = new_erp()
    response = secret.login(headers=nginx(certificate()))
    assert response.status_code == 200
    assert "cnf" not in claims_of(response)
    for headers in (nginx(certificate(), "FAILED:x"), {"Client-Cert": "x"}):
        assert secret.login(headers=headers).status_code == 200
    key = new_key_erp()
    assert key.login(headers=nginx(certificate())).status_code == 200
    basic = secret.login(
        client_id=None, client_secret=None, headers={"Authorization": secret.basic}
    )
    assert basic.status_code == 200


def test_a_stale_bearer_token_means_nothing(erp: CertificateErp) -> None:
    assert erp.login(more={"Authorization": "Bearer x"}).status_code == 200


def test_the_client_id_is_needed(erp: CertificateErp) -> None:
    assert "The parameter client_id is missing" in description(erp.login(client_id=None))
    swapped = erp.login(client_id="cs_test_x")
    assert reason(swapped) == "malformed_credentials"


def test_after_a_change_back_the_new_secret_logs_in_and_the_certificate_does_not(
    erp: CertificateErp,
) -> None:
    assert erp.login().status_code == 200
    issued = use_client_secret(system_user=erp.system_user, reason="r", **now())
    assert_not_accepted(erp.login())
    assert Erp(erp.client_id, issued.credentials.client_secret).login().status_code == 200


# --- Rotation -------------------------------------------------------------------------------------


def test_two_certificates_log_in_until_the_old_one_is_removed(erp: CertificateErp) -> None:
    new = certificate("CN=erp2,C=MY")
    register_client_certificate(system_user=erp.system_user, text=new.pem, **now())
    assert erp.login().status_code == 200
    assert erp.login(new).status_code == 200
    old = erp.system_user.credentials.order_by("pk").first()
    assert old is not None
    revoke_credential(credential=old, reason="rotated", **now())
    assert erp.login(new).status_code == 200
    refused = erp.login()
    assert "The registration of this certificate was removed on" in description(refused)
    assert reason(refused) == "secret_revoked"


def test_an_expired_registration_is_named_with_its_date(erp: CertificateErp) -> None:
    begin = timezone.now() - timedelta(days=2)
    end = begin + timedelta(days=1)
    Credential.objects.update(created_at=begin, expires_at=end)
    assert_refused(
        erp.login(),
        reason="secret_expired",
        status=400,
        error="invalid_client",
        says="The registration of this certificate expired on",
        fixed_by="The person who rotates the secrets",
        headers={"X-Rate-Limit-Limit": "12", "X-Rate-Limit-Remaining": "12"},
    )


@pytest.mark.parametrize("ended", ["revoked", "expired"])
@pytest.mark.parametrize("first", ["subject", "alternative name"])
def test_of_two_registered_names_in_one_certificate_the_one_that_works_counts(
    ended: str, first: str
) -> None:
    issued = authority().issue("CN=both,C=MY", x509.DNSName(HOST), x509.RFC822Name(EMAIL))
    names: list[tuple[str, Any]] = [(issued.pem, None), (HOST, NameKind.SAN_DNS)]
    if first != "subject":
        names.reverse()
    erp = new_certificate_erp(issued, *names[0])
    text, kind = names[1]
    soon = timezone.now() + timedelta(days=30)  # the one that is revoked would live for longer
    register_client_certificate(
        system_user=erp.system_user, text=text, kind=kind, expires_at=soon, **now()
    )
    assert erp.login().status_code == 200
    old, new = erp.system_user.credentials.order_by("pk")
    if ended == "revoked":
        revoke_credential(credential=old, reason="rotated", **now())
    else:
        moment = timezone.now() - timedelta(days=1)
        rows = Credential.objects.filter(pk=old.pk)
        rows.update(created_at=moment - timedelta(days=1), expires_at=moment)
    for _ in range(2):  # as the registry has it, and as the node remembers it
        event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
        assert (event.reason, event.secret_id) == ("", new.pk)
    revoke_credential(credential=new, reason="rotated", **now())
    assert reason(erp.login()) in ("secret_revoked", "secret_expired")


# --- Strangers, and what it costs -----------------------------------------------------------------


def test_strangers_get_one_answer(erp: CertificateErp) -> None:
    other = certificate("CN=other,C=MY")
    answers = [
        erp.login(other),
        erp.login(authority().issue("", x509.IPAddress(_address()))),  # no name at all
        CertificateErp(new_erp().system_user, other).login(),  # a client with a secret
        CertificateErp(new_key_erp().system_user, other).login(),
    ]
    unknown = CertificateErp(SystemUser(client_id=new_erp().client_id), other)
    SystemUser.objects.filter(client_id=unknown.client_id).delete()
    answers.append(unknown.login())
    blocked = new_certificate_erp()
    block_system_user(system_user=blocked.system_user, reason="r", **now())
    answers.append(blocked.login(other))
    for response in answers:
        assert_not_accepted(response)
    assert len({description(response) for response in answers}) == 1


def _address() -> Any:
    from ipaddress import ip_address

    return ip_address("192.0.2.1")


def test_what_a_blocked_client_is_told(erp: CertificateErp) -> None:
    block_system_user(system_user=erp.system_user, reason="r", **now())
    assert "was blocked on" in description(erp.login())


def test_a_login_is_one_query_and_one_record(erp: CertificateErp) -> None:
    secret = new_erp()
    for one in (erp, secret):  # the first login of a process reads the signing keys, too
        assert one.login().status_code == 200
    with statements_sent() as with_certificate:
        assert erp.login().status_code == 200
    with statements_sent() as with_secret:
        assert secret.login().status_code == 200
    assert with_certificate == with_secret


def test_an_unknown_client_and_an_unknown_certificate_cost_the_same_queries(
    erp: CertificateErp,
) -> None:
    other = certificate("CN=other,C=MY")
    unknown = CertificateErp(SystemUser(client_id=new_erp().client_id), other)
    SystemUser.objects.filter(client_id=unknown.client_id).delete()
    found = []
    for one, issued in ((erp, other), (unknown, other), (unknown, erp.issued)):
        assert erp.login().status_code == 200
        with statements_sent() as words:
            assert_not_accepted(one.login(issued))
        found.append(words)
    assert found[0] == found[1] == found[2]


def test_a_client_over_its_limit_is_refused_and_costs_no_query_on_postgresql() -> None:
    erp = new_certificate_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    for _ in range(2):
        response = erp.login()
        assert response.status_code == 429
        assert "X-Client-Secret-Expires-At" not in response
    assert_not_accepted(erp.login(certificate("CN=other,C=MY")))


def test_a_stranger_does_not_slow_down_the_client(erp: CertificateErp) -> None:
    other = certificate("CN=other,C=MY")
    assert [erp.login(other).status_code for _ in range(15)][-1] == 429
    assert erp.login().status_code == 200
