"""What a node remembers of clients with certificates: no stranger, and never against a change."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taxpayers.models import Credential, SystemUser
from taxpayers.services import (
    block_system_user,
    register_client_certificate,
    revoke_credential,
    use_client_secret,
)
from tests.certificates.certificate_erp import (
    BY,
    CertificateErp,
    certificate,
    new_certificate_erp,
)
from tests.support.queries import statements_sent
from tokens.models import LoginEvent
from tokens.operations.node import this_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp(logins_per_minute=0)


def reason(response: Any) -> str:
    return LoginEvent.objects.get(pk=response["correlationId"]).reason


def now() -> dict[str, Any]:
    return {"by": BY, "at": timezone.now()}


def row_of(erp: CertificateErp) -> Credential:
    return erp.system_user.credentials.get()


CHANGES: dict[str, tuple[Callable[[CertificateErp], object], str]] = {
    "block": (
        lambda erp: block_system_user(system_user=erp.system_user, reason="r", **now()),
        "system_user_blocked",
    ),
    "removed": (
        lambda erp: revoke_credential(credential=row_of(erp), reason="r", **now()),
        "secret_revoked",
    ),
    "removed by SQL": (lambda erp: row_of(erp).delete(), "invalid_credentials"),
    "another name by SQL": (
        lambda erp: Credential.objects.filter(pk=row_of(erp).pk).update(lookup="tls$x"),
        "invalid_credentials",
    ),
    "no certificate any more by SQL": (
        lambda erp: Credential.objects.filter(pk=row_of(erp).pk).update(certificate_name=None),
        "invalid_credentials",
    ),
    "method": (
        lambda erp: use_client_secret(system_user=erp.system_user, reason="r", **now()),
        "invalid_credentials",
    ),
    "method by SQL": (
        lambda erp: SystemUser.objects.filter(pk=erp.system_user.pk).update(
            token_endpoint_auth_method=""
        ),
        "invalid_credentials",
    ),
    "expired by SQL": (
        lambda erp: Credential.objects.filter(pk=row_of(erp).pk).update(
            created_at=timezone.now() - timedelta(days=3),
            expires_at=timezone.now() - timedelta(days=1),
        ),
        "secret_expired",
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_next_login_obeys_a_change(
    erp: CertificateErp, change: Callable[[CertificateErp], object], expected: str
) -> None:
    for _ in range(2):
        assert erp.login().status_code == 200
    change(erp)
    assert reason(erp.login()) == expected


def test_a_new_certificate_logs_in_at_once_where_it_was_refused_before(
    erp: CertificateErp,
) -> None:
    new = certificate("CN=new,C=MY")
    assert reason(erp.login(new)) == "invalid_credentials"
    register_client_certificate(system_user=erp.system_user, text=new.pem, **now())
    assert erp.login(new).status_code == 200


@pytest.mark.postgresql
def test_a_login_of_a_client_that_is_remembered_is_one_statement(erp: CertificateErp) -> None:
    assert erp.login().status_code == 200
    with statements_sent() as words:
        assert erp.login().status_code == 200
    assert words == ["WITH"]


@pytest.mark.postgresql
def test_a_client_over_its_limit_costs_no_query() -> None:
    erp = new_certificate_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    assert erp.login().status_code == 429
    with statements_sent() as words:
        assert erp.login().status_code == 429
    assert words == []


@pytest.mark.postgresql
def test_a_stranger_fills_no_memory_of_a_node(
    erp: CertificateErp, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[Any] = []
    monkeypatch.setattr(
        type(this_node().local_facts), "store", lambda self, query, facts: stored.append(query)
    )
    assert reason(erp.login(certificate("CN=other,C=MY"))) == "invalid_credentials"
    assert stored == []
    assert erp.login().status_code == 200
    assert {query.client_id for query in stored} == {erp.client_id}
