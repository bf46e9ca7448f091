"""Certificates are registered, replaced and removed by services and commands, and recorded."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.certificates.names import NameKind
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import (
    ServiceError,
    issue_secret,
    register_client_certificate,
    register_client_keys,
    revoke_credential,
    use_certificate,
    use_client_secret,
    use_private_key,
)
from tests.certificates.addresses import MTLS_URL
from tests.certificates.certificate_erp import (
    BY,
    SUBJECT,
    CertificateErp,
    certificate,
    new_certificate_erp,
)
from tests.client_auth.key_erp import KeyErp, jwks, new_pair
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import new_erp
from tests.support.factories import CredentialFactory, SystemUserFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
NOW: dict[str, Any] = {"by": BY, "at": AT}
WHY: dict[str, Any] = {"reason": "asked by letter", **NOW}
PEM = certificate().pem
OTHER = certificate("CN=other,C=MY").pem


@pytest.fixture
def user() -> SystemUser:
    owner = SystemUserFactory.create()
    CredentialFactory.create(system_user=owner)
    return owner


def live(user: SystemUser) -> list[Credential]:
    return list(user.credentials.filter(revoked_at__isnull=True).order_by("pk"))


def test_a_change_of_the_method_revokes_the_secret_and_is_recorded(user: SystemUser) -> None:
    use_certificate(system_user=user, text=PEM, **WHY)
    (row,) = live(user)
    user.refresh_from_db()
    assert user.token_endpoint_auth_method == "tls_client_auth"
    assert (row.is_certificate, row.is_key) == (True, False)
    assert row.expires_at == AT + YEAR
    assert user.last_secret_ends_at == AT + YEAR
    assert row.name == f"tls_client_auth_subject_dn:{SUBJECT}"
    revoked, changed, registered = Change.objects.order_by("pk")
    assert [c.action for c in (revoked, changed, registered)] == [
        *("revoke_secret", "change_login_method", "register_client_certificate")
    ]
    assert changed.before == {"token_endpoint_auth_method": ""}
    assert registered.after == {
        "secret": str(row),
        "credential": "certificate",
        "certificate_name": row.certificate_name,
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
    }


def test_a_certificate_may_be_used_from_where_the_secret_was(user: SystemUser) -> None:
    networks = "192.0.2.0/24 2001:db8::/32"
    user.credentials.update(allowed_networks=networks)
    use_certificate(system_user=user, text=PEM, **WHY)
    register_client_certificate(system_user=user, text=OTHER, **NOW)
    assert [row.allowed_networks for row in live(user)] == [networks, networks]
    registered = Change.objects.filter(action="register_client_certificate")
    assert {change.after["allowed_networks"] for change in registered} == {networks}


def test_a_login_from_elsewhere_is_refused() -> None:
    erp = new_certificate_erp()
    erp.system_user.credentials.update(allowed_networks="192.0.2.0/24")
    assert erp.login(more={"X-Forwarded-For": "192.0.2.7"}).status_code == 200
    assert erp.login(more={"X-Forwarded-For": "203.0.113.7"}).status_code == 400


def test_from_a_key_to_a_certificate_and_back(user: SystemUser) -> None:
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    use_certificate(system_user=user, text=PEM, **WHY)
    assert [row.is_certificate for row in live(user)] == [True]
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    assert [row.is_key for row in live(user)] == [True]


def test_there_are_two_at_most(user: SystemUser) -> None:
    use_certificate(system_user=user, text=PEM, **WHY)
    register_client_certificate(system_user=user, text=OTHER, **NOW)
    with pytest.raises(ServiceError, match="First revoke the one that is no longer in use"):
        register_client_certificate(
            system_user=user, text="third.example.com", kind=NameKind.SAN_DNS, **NOW
        )
    assert len(live(user)) == 2


def test_a_name_that_works_is_not_registered_again(user: SystemUser) -> None:
    use_certificate(system_user=user, text=PEM, **WHY)
    spelled: dict[str, Any] = {"text": SUBJECT.lower(), "kind": NameKind.SUBJECT_DN}
    with pytest.raises(ServiceError, match=f"{SUBJECT} is there already"):
        register_client_certificate(system_user=user, **spelled, **NOW)


@pytest.mark.parametrize("ended", ["revoked", "expired"])
def test_a_name_that_has_ended_can_be_registered_again(user: SystemUser, ended: str) -> None:
    use_certificate(system_user=user, text=PEM, **WHY)
    (old,) = live(user)
    at = AT
    if ended == "revoked":
        revoke_credential(credential=old, **WHY)
    else:
        at = AT + YEAR + timedelta(seconds=1)
    new = register_client_certificate(system_user=user, text=PEM, by=BY, at=at)
    old.refresh_from_db()
    assert new.pk != old.pk  # so the tokens of the old one stay ended
    assert old.lookup != new.lookup
    assert old.slot is None
    revoke_credential(credential=new, reason="r", by=BY, at=at)
    register_client_certificate(system_user=user, text=PEM, by=BY, at=at)
    assert user.credentials.filter(certificate_name=old.certificate_name).count() == 3


def test_after_a_registration_again_the_same_certificate_logs_in() -> None:
    erp = new_certificate_erp()
    use_client_secret(system_user=erp.system_user, reason="r", by=BY, at=datetime.now(UTC))
    use_certificate(system_user=erp.system_user, text=PEM, reason="r", by=BY, at=datetime.now(UTC))
    assert erp.login().status_code == 200


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda user: register_client_certificate(system_user=user, text=PEM, **NOW),
            "First change how it logs in to tls_client_auth",
        ),
        (lambda user: use_certificate(system_user=user, text="x", **WHY), "This is no certificate"),
        (
            lambda user: use_certificate(
                system_user=user, text="x", kind=NameKind.SUBJECT_DN, **WHY
            ),
            "no distinguished name",
        ),
        (
            lambda user: use_certificate(system_user=user, text=PEM, reason="", **NOW),
            "Give a reason",
        ),
        (
            lambda user: use_certificate(system_user=user, text=PEM, expires_at=AT - YEAR, **WHY),
            "the certificate would end",
        ),
    ],
)
def test_what_cannot_be_changed_changes_nothing(user: SystemUser, change: Any, text: str) -> None:
    with pytest.raises(ServiceError, match=text):
        change(user)
    user.refresh_from_db()
    assert user.token_endpoint_auth_method == ""
    assert len(live(user)) == 1
    assert not Change.objects.exists()


def test_nobody_is_changed_to_certificates_where_none_is_asked_for(
    user: SystemUser, settings: Settings
) -> None:
    settings.MTLS_URL = ""
    with pytest.raises(ServiceError, match="must set MTLS_URL first"):
        use_certificate(system_user=user, text=PEM, **WHY)


def test_a_client_with_a_certificate_gets_neither_secret_nor_key(user: SystemUser) -> None:
    use_certificate(system_user=user, text=PEM, **WHY)
    with pytest.raises(ServiceError, match="logs in with a certificate and has no secret"):
        issue_secret(system_user=user, **NOW)
    with pytest.raises(ServiceError, match="does not log in with a private key"):
        register_client_keys(system_user=user, keys=jwks(new_pair()), **NOW)
    with pytest.raises(ServiceError, match="with a certificate already"):
        use_certificate(system_user=user, text=OTHER, **WHY)


def test_a_private_key_is_refused_and_stored_nowhere(user: SystemUser, tmp_path: Path) -> None:
    _, key = certificate().write(tmp_path, "erp")
    private = Path(key).read_text()
    for text in (private, PEM + private):
        with pytest.raises(ServiceError, match="PRIVATE") as refused:
            use_certificate(system_user=user, text=text, **WHY)
        assert private.splitlines()[1] not in str(refused.value)
    assert not Change.objects.exists()
    assert not Credential.objects.filter(certificate_name__isnull=False).exists()


# --- Commands -------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "erp.pem"
    path.write_text(PEM)
    return path


def test_the_login_method_is_changed_by_command_there_and_back(file: Path) -> None:
    erp = new_erp()
    there = json_output_of(
        *("change_system_user", erp.client_id, "--auth-method", "tls_client_auth"),
        *("--certificate", str(file), "--reason", "asked by letter"),
    )
    assert there["auth_method"] == "tls_client_auth"
    assert erp.login().status_code == 400
    by_certificate = CertificateErp(erp.system_user, certificate())
    assert by_certificate.login().status_code == 200
    back = json_output_of("change_system_user", erp.client_id, "--auth-method", "client_secret")
    assert back["auth_method"] == "client_secret"
    assert by_certificate.login().status_code == 400


def test_a_certificate_is_added_and_the_old_one_removed() -> None:
    erp = new_certificate_erp()
    added = json_output_of(
        *("register_client_certificate", erp.client_id, "--subject-dn", "CN=new,C=MY"),
        *("--expires", "2099-12-31"),
    )
    old, new = added["certificates"]
    assert new["name"] == "tls_client_auth_subject_dn:CN=new,C=MY"
    assert new["expires_at"] == "2099-12-31T15:59:59.999999Z"
    assert added["token_endpoint"] == f"{MTLS_URL}/connect/token"
    removed = output_of("revoke_secret", erp.client_id, old["hint"])
    assert f"It still has …{new['hint']}." in removed
    assert erp.login().status_code == 400
    assert erp.login(certificate("CN=new,C=MY")).status_code == 200
    last = output_of("revoke_secret", erp.client_id, new["hint"])
    assert "It has no other live certificate, so it cannot log in." in last
    assert f"manage.py register_client_certificate {erp.client_id} --certificate FILE" in last


def test_the_command_shows_what_the_erp_system_needs() -> None:
    erp = new_certificate_erp()
    text = output_of("register_client_certificate", erp.client_id, "--san-dns", "erp.example.com")
    assert "certificate    tls_client_auth_san_dns:erp.example.com (…" in text
    assert f"log in at      {MTLS_URL}/connect/token\n" in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--auth-method", "tls_client_auth"), "--auth-method tls_client_auth and --certificate"),
        (("--certificate", "{file}"), "--auth-method tls_client_auth and --certificate"),
        (("--auth-method", "tls_client_auth", "--certificate", "/nowhere"), "cannot be read"),
        (
            ("--auth-method", "tls_client_auth", "--san-dns", "erp"),
            "This is no complete host name without wildcards",
        ),
        (
            ("--auth-method", "tls_client_auth", "--san-dns", "a.b", "--san-uri", "a:b"),
            "not allowed with argument",
        ),
        (
            ("--auth-method", "private_key_jwt", "--certificate", "{file}"),
            "--auth-method private_key_jwt and --jwks belong together",
        ),
    ],
)
def test_a_wrong_argument_is_one_line(file: Path, arguments: tuple[str, ...], line: str) -> None:
    erp = new_erp()
    given: Any = [argument.format(file=file) for argument in arguments]
    assert line in error_of("change_system_user", erp.client_id, *given)
    assert erp.login().status_code == 200


def test_a_key_and_a_certificate_are_told_apart_by_explain_login() -> None:
    erp = new_certificate_erp()
    explained = output_of("explain_login", erp.login()["correlationId"])
    assert "proved by  tls_client_auth, certificate …" in explained
    assert f"tls_client_auth_subject_dn:{SUBJECT}\n" in explained
    pair = new_pair()
    user = use_private_key(
        system_user=erp.system_user,
        keys=jwks(pair),
        reason="r",
        by=BY,
        at=datetime.now(UTC),
    )
    again = output_of("explain_login", KeyErp(user, pair).login()["correlationId"])
    assert "proved by  private_key_jwt" in again
