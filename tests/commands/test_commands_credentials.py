"""The commands for system users and their secrets (contract 6)."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taxpayers.credentials import hash_secret
from taxpayers.models import Change, SystemUser
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.factories import CredentialFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db

TIN, ROB = "C1234567890", "201901234567"


@pytest.fixture
def secret() -> Any:
    """The only secret of a system user; in clear as `.clear`."""
    return CredentialFactory.create(system_user__name="ERP")


@pytest.fixture
def client_id(secret: Any) -> str:
    name: str = secret.system_user.client_id
    return name


def test_issue_credentials_answers_machines() -> None:
    TaxpayerFactory.create(tin=TIN)
    answer = json_output_of(
        *("issue_credentials", TIN, "--name", "ERP", "--scope", "InvoicingAPI"),
        *("--expires", "2099-06-30", "--secret-expires", "2099-01-31"),
        *("--logins-per-minute", "0"),
    )
    user = SystemUser.objects.get()
    secret = user.credentials.get()
    assert answer == {
        "client_id": user.client_id,
        "client_secret": answer["client_secret"],
        "secret_hint": answer["client_secret"][-4:],
        "secret_expires_at": "2099-01-31T15:59:59.999999Z",
        "allowed_networks": [],
        "environment": "test",
        "token_endpoint": "http://127.0.0.1:8000/connect/token",
        "allowed_permissions": [],
        "allowed_taxpayers": [],
        "taxpayer": TIN,
        "name": "ERP",
        "scopes": ["InvoicingAPI"],
        "logins_per_minute": 0,
        "expires_at": "2099-06-30T15:59:59.999999Z",
    }
    assert secret.lookup == hash_secret(answer["client_secret"])
    assert (user.logins_per_minute, user.scopes) == (0, "InvoicingAPI")


def test_rotate_secret_answers_machines_with_both(secret: Any, client_id: str) -> None:
    end = (timezone.now() + timedelta(days=7)).replace(microsecond=0)
    moment = end.isoformat().replace("+00:00", "Z")
    answer = json_output_of(
        *("rotate_secret", client_id, "--retire-old", moment, "--secret-expires", "2099-12-31")
    )
    assert answer["client_id"] == client_id
    assert answer["secret_expires_at"] == "2099-12-31T15:59:59.999999Z"
    assert answer["old"] == [{"secret_hint": secret.hint, "secret_expires_at": moment}]
    secret.refresh_from_db()
    assert secret.expires_at == end


def test_revoke_secret_ends_it_and_warns_if_it_was_the_last(secret: Any, client_id: str) -> None:
    text = output_of("revoke_secret", client_id, secret.hint, "--reason", "leaked")
    assert text.startswith(f"{secret} of {client_id} was revoked 20")
    assert "It has no other live secret, so it cannot log in." in text
    assert f"manage.py rotate_secret {client_id}\n" in text
    assert Change.objects.get().reason == "leaked"


def test_revoke_secret_is_safe_to_repeat(secret: Any, client_id: str) -> None:
    remaining = json_output_of("rotate_secret", client_id)["secret_hint"]
    first = json_output_of("revoke_secret", client_id, secret.hint)
    assert json_output_of("revoke_secret", client_id, secret.hint) == first
    secret.refresh_from_db()
    assert first == {
        "client_id": client_id,
        "secret_hint": secret.hint,
        "revoked_at": secret.revoked_at.isoformat().replace("+00:00", "Z"),
        "live_secrets": [remaining],
    }
    assert f"It still has …{remaining}." in output_of("revoke_secret", client_id, secret.hint)


@pytest.mark.parametrize("form", ["{hint}", "…{hint}", "{clear}"])
def test_revoke_secret_takes_the_hint_as_it_is_shown_or_the_whole_secret(
    secret: Any, client_id: str, form: str
) -> None:
    given = form.format(hint=secret.hint, clear=secret.clear)
    assert secret.clear not in output_of("revoke_secret", client_id, given)
    secret.refresh_from_db()
    assert secret.revoked_at


def test_revoke_secret_takes_the_live_one_of_two_with_the_same_hint(secret: Any) -> None:
    owner = secret.system_user
    gone = CredentialFactory.create(
        system_user=owner, slot=None, revoked_at=timezone.now(), hint=secret.hint
    )
    output_of("revoke_secret", owner.client_id, secret.hint)
    secret.refresh_from_db()
    assert secret.revoked_at
    line = error_of("revoke_secret", owner.client_id, gone.hint)
    assert line == f"Several secrets end with {gone.hint}. Revoke it in the admin."
