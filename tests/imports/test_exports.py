"""Exports have what the pages of the records show, in columns for programs."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone

from taxpayers.certificates import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser
from tests.imports.test_import_pages import send
from tests.registry.workbooks import rows_of
from tests.support import make
from tests.support.factories import stored_login
from tests.support.staff import csv_rows_of, list_url, staff_client, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def exported(
    model: type[Model], form: str = "csv", query: str = "", by: str = "aminah"
) -> list[dict[str, Any]]:
    """The rows of the export, by the names of their columns."""
    response: Any = staff_client("auditor", by).get(f"{list_url(model)}export.{form}{query}")
    content = b"".join(response.streaming_content) if form == "xlsx" else b""
    header, *rows = rows_of(content) if form == "xlsx" else csv_rows_of(response)
    return [dict(zip(header, row, strict=True)) for row in rows]


def shown(moment: Any) -> str:
    return timezone.localtime(moment).isoformat(timespec="seconds")


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_system_user_has_its_limits_and_its_credentials(form: str) -> None:
    at = timezone.now()
    user = make.system_user(
        token_binding=TokenBinding.DPOP,
        allowed_permissions="documents:submit documents:view",
        allowed_taxpayers="C1 C2:R-1",
        only_on_behalf=True,
    )
    old = make.credential(
        system_user=user, allowed_networks="192.0.2.0/24 2001:db8::/32", last_used_at=at
    )
    new = make.credential(system_user=user, slot=2, expires_at=at + 9 * DAY)
    make.credential(system_user=user, slot=None, revoked_at=at)
    (row,) = exported(SystemUser, form)
    expected = {
        "state": "active",
        "last_used_at": shown(at),
        "login_method": "client_secret",
        "token_binding": "dpop",
        "allowed_permissions": "documents:submit documents:view",
        "allowed_taxpayers": "C1 C2:R-1",
        "credential_1": str(old),
        "credential_1_kind": "secret",
        "credential_1_name": "",
        "credential_1_expires_at": shown(old.expires_at),
        "credential_1_last_used_at": shown(at),
        "credential_1_allowed_networks": "192.0.2.0/24 2001:db8::/32",
        "credential_2": str(new),
        "credential_2_kind": "secret",
        "credential_2_name": "",
        "credential_2_expires_at": shown(new.expires_at),
        "credential_2_last_used_at": "",
        "credential_2_allowed_networks": "",
        "only_on_behalf": "yes",
    }
    assert {name: row[name] or "" for name in expected} == expected
    assert list(row)[-len(expected) :] == list(expected)


def test_a_client_with_a_certificate_or_a_key_says_so() -> None:
    keyed = make.system_user(token_endpoint_auth_method=PRIVATE_KEY_JWT)
    make.credential(system_user=keyed, public_jwk='{"kid": "key of March"}')
    named = make.system_user(token_endpoint_auth_method=TLS_CLIENT_AUTH)
    make.credential(system_user=named, certificate_name="CN=erp.example")
    rows = {row["client_id"]: row for row in exported(SystemUser)}
    names = ("login_method", "token_binding", "credential_1_kind", "credential_1_name")
    assert [rows[keyed.client_id][name] for name in names] == [
        *("private_key_jwt", "none", "key", "key of March")
    ]
    assert [rows[named.client_id][name] for name in names] == [
        *("tls_client_auth", "tls", "certificate", "CN=erp.example")
    ]


def test_the_state_names_each_thing_that_refuses_its_logins() -> None:
    at = timezone.now()
    make.system_user(taxpayer__is_active=False, expires_at=at - DAY, blocked_at=at)
    (row,) = exported(SystemUser)
    assert row["state"] == (
        "no_valid_credential system_user_blocked system_user_expired taxpayer_inactive"
    )


def test_an_expired_secret_is_exported_until_it_is_replaced() -> None:
    at = timezone.now()
    old = make.credential(created_at=at - 9 * DAY, expires_at=at - DAY)
    (row,) = exported(SystemUser)
    assert row["state"] == "no_valid_credential"
    assert row["credential_1_expires_at"] == shown(at - DAY)
    Credential.objects.filter(pk=old.pk).update(slot=None)
    new = make.credential(system_user=old.system_user)
    (row,) = exported(SystemUser, by="badrul")
    assert (row["credential_1"], row["credential_2"]) == (str(new), "")


def test_an_import_does_not_leave_out_a_limit_unseen() -> None:
    make.system_user(allowed_taxpayers="C1")
    file = staff_client("auditor").get(f"{list_url(SystemUser)}export.csv")
    content = b"".join(file.streaming_content)  # type: ignore[attr-defined]
    SystemUser.objects.all().delete()
    page = send(staff_client("security officer", "badrul"), "system_users", content)
    assert "an import cannot set allowed_taxpayers: remove the row" in text_of(page)
    assert not SystemUser.objects.exists()


def test_a_login_names_the_secret_and_what_was_wrong_and_since_when() -> None:
    at = timezone.now()
    secret = make.credential()
    user = secret.system_user
    stored_login(at - DAY, "secret_expired", user, since=at - DAY, secret_id=secret.pk)
    stored_login(at, "missing_parameter", user, parameter="client_secret")
    missing, expired = exported(LoginEvent, query=f"?q={secret.system_user.client_id}")
    assert (expired["secret"], expired["since"]) == (str(secret), shown(at - DAY))
    assert (missing["secret"], missing["since"]) == ("", "")
    assert (missing["parameter"], expired["parameter"]) == ("client_secret", "")


def test_a_permission_and_an_intermediary_have_all_that_their_pages_show() -> None:
    granted: Any = make.permission(intermediary__taxpayer__is_active=False)
    (permission,), (role,) = (exported(m, by=m.__name__) for m in (GrantedPermission, Intermediary))
    assert permission["granted_at"] == shown(granted.created_at)
    assert role["taxpayer_active"] == "no"
