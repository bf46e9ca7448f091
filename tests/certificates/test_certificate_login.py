"""A login with a client certificate: its names, and from which proxy it is believed.

What it shares with a secret and a key: tests/client_auth/test_every_kind.py.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from django.utils import timezone

from taxpayers.certificates.names import NameKind
from taxpayers.credentials import new_client_id
from taxpayers.models import Credential, SystemUser
from taxpayers.services import register_client_certificate, revoke_credential
from tests.certificates.certificate_erp import (
    BY,
    CertificateErp,
    authority,
    new_certificate_erp,
)
from tests.support.erp import description_of, reason_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

HOST, EMAIL = "erp.example.com", "erp@example.com"


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def now() -> dict[str, Any]:
    return {"by": BY, "at": timezone.now()}


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
        reason="a test", system_user=erp.system_user, text=text, kind=kind, expires_at=soon, **now()
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
    assert reason_of(erp.login()) in ("secret_revoked", "secret_expired")


def test_the_clock_of_the_database_is_asked_too() -> None:
    old = authority().issue("CN=old", begins=datetime(2026, 1, 1, tzinfo=UTC))
    early = authority().issue("CN=old", begins=timezone.now() + timedelta(hours=1))
    erp = new_certificate_erp(old)
    assert "has expired by the clock" in description_of(erp.login())
    assert "not yet valid by the clock" in description_of(erp.login(early))
    # It tells a stranger nothing of the registry.
    unknown = CertificateErp(SystemUser(client_id=new_client_id("test")), old)
    assert description_of(unknown.login()) == description_of(erp.login())
