"""Staff see which certificate a system user logs in with, change it, and register and remove it."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from taxpayers.models import Change, Credential
from taxpayers.services import revoke_credential
from tests.certificates.certificate_erp import (
    BY,
    SUBJECT,
    CertificateErp,
    certificate,
    new_certificate_erp,
)
from tests.support.erp import new_erp
from tests.support.staff import errors_of, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def officer(db: None) -> Client:
    return staff_client("security officer", "ravi")


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def test_the_page_shows_the_method_and_the_name(officer: Client, erp: CertificateErp) -> None:
    page = text_of(officer.get(page_url(erp.system_user)))
    assert "Logs in with Certificate (tls_client_auth)" in page
    assert "Tokens bound to The client's TLS certificate" in page
    assert f"Certificate tls_client_auth_subject_dn:{SUBJECT} Valid" in page
    for offered in ("Register a new certificate", "Change to a secret", "Change to a private key"):
        assert offered in page
    assert "Issue a new secret" not in page


def test_a_change_to_a_certificate(officer: Client) -> None:
    erp = new_erp()
    assert "Change to a certificate" in text_of(officer.get(page_url(erp.system_user)))
    form = {"kind": "", "text": certificate().pem, "expires": "", "reason": "asked by letter"}
    response = officer.post(task_url(erp.system_user, "use_certificate"), form, follow=True)
    assert "logs in with a certificate now" in text_of(response)
    assert CertificateErp(erp.system_user, certificate()).login().status_code == 200
    assert erp.login().status_code == 400
    assert Change.objects.filter(by="ravi", reason="asked by letter").count() == 2


def test_where_no_certificate_is_asked_for_it_is_not_offered(
    officer: Client, settings: Settings
) -> None:
    settings.MTLS_URL = ""
    user = new_erp().system_user
    assert "Change to a certificate" not in text_of(officer.get(page_url(user)))
    response = officer.post(task_url(user, "use_certificate"), {}, follow=True)
    assert "takes no client certificates yet" in text_of(response)


def test_a_certificate_is_registered_and_the_old_one_removed(
    officer: Client, erp: CertificateErp
) -> None:
    url = task_url(erp.system_user, "register_client_certificate")
    kind = "tls_client_auth_subject_dn"
    form = {"kind": kind, "text": "CN=new,C=MY", "expires": "2099-12-31"}
    response = officer.post(url, form, follow=True)
    assert f"The certificate with {kind}:CN=new,C=MY is registered." in text_of(response)
    full = officer.post(url, form | {"text": "CN=third"}, follow=True)
    assert "There are already two certificates." in text_of(full)
    old = erp.system_user.credentials.order_by("pk").first()
    assert old is not None
    removal = {"secret": str(old.pk), "reason": "rotated"}
    officer.post(task_url(erp.system_user, "revoke_secret"), removal)
    assert erp.login().status_code == 400
    assert erp.login(certificate("CN=new,C=MY")).status_code == 200


def test_what_is_wrong_is_said_and_shown_again_unless_it_is_private(
    officer: Client, erp: CertificateErp, tmp_path: Path
) -> None:
    url = task_url(erp.system_user, "register_client_certificate")
    wrong = officer.post(url, {"kind": "tls_client_auth_san_dns", "text": "*.example.com"})
    assert "no complete host name" in errors_of(wrong)
    assert "*.example.com" in wrong.content.decode()
    private = Path(certificate().write(tmp_path, "erp")[1]).read_text()
    response = officer.post(url, {"kind": "", "text": private})
    assert "PRIVATE" in errors_of(response)
    assert private.splitlines()[1] not in response.content.decode()


@pytest.mark.parametrize("role", ["viewer", "registrar", "auditor"])
@pytest.mark.parametrize("task", ["register_client_certificate", "use_certificate"])
def test_only_security_officers_change_it(role: str, task: str, erp: CertificateErp) -> None:
    client = staff_client(role)
    assert client.post(task_url(erp.system_user, task), {}).status_code == 403


def test_without_a_valid_certificate_the_state_says_so(
    officer: Client, erp: CertificateErp
) -> None:
    row = erp.system_user.credentials.get()
    revoke_credential(credential=row, reason="r", by=BY, at=timezone.now())
    assert "No valid certificate" in text_of(officer.get(page_url(erp.system_user)))


def test_a_registration_that_ends_soon_is_a_warning(officer: Client, erp: CertificateErp) -> None:
    Credential.objects.update(expires_at=timezone.now() + timedelta(days=3))
    page = text_of(officer.get(page_url(erp.system_user)))
    assert "The registration of its last certificate" in page


def test_the_page_of_a_login_names_the_certificate(officer: Client, erp: CertificateErp) -> None:
    event = LoginEvent.objects.get(pk=erp.login()["correlationId"])
    shown = text_of(officer.get(page_url(event)))
    assert f"certificate with tls_client_auth_subject_dn:{SUBJECT} (tls_client_auth)" in shown


def test_a_certificate_that_ends_soon_is_replaced_by_a_certificate(
    officer: Client, erp: CertificateErp
) -> None:
    Credential.objects.update(expires_at=timezone.now() + timedelta(days=3))
    page = officer.get(reverse("admin:ending_soon"))
    assert f" Certificate {erp.system_user}" in text_of(page)
    ((_row, task),) = page.context["rows"]
    assert str(task.link.title) == "Register a new certificate"
    assert officer.get(task.link.url).status_code == 200
    asked = text_of(officer.get(task_url(erp.system_user, "revoke_secret")))
    assert "It is the last one that is valid." in asked
    assert "Register a new certificate" in asked
