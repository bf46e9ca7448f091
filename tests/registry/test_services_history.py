"""Every change of state is recorded with who, when, what and why (contract 4)."""

import inspect
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError
from pytest_django import Settings

from taxpayers import services
from taxpayers.certificates.names import NameKind
from taxpayers.credentials import hash_secret
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.files.taxpayer_rows import read_taxpayers
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.models import Change
from taxpayers.services import Author
from tests.support.factories import (
    SUBMIT,
    VIEW,
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.outages import writing_fails

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
WHEN, BEFORE = "2026-03-01T12:00:00+00:00", "2026-02-28T12:00:00+00:00"
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
KEY = (
    '{"kty": "OKP", "crv": "Ed25519", "kid": "march-2026",'
    ' "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
)
SECRET = {"secret": "…pRB0", "credential": "secret"}
WITH_KEY = {"token_endpoint_auth_method": "private_key_jwt"}
CLEAR = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"


@dataclass
class Case:
    """A service called once, and the one record that it must write into the history."""

    service: str
    arguments: Callable[[], dict[str, Any]]
    record: tuple[str, str, str]  # action, kind of the object, label
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


def taxpayer(**facts: Any) -> Any:
    return TaxpayerFactory.create(tin="C1234567890", name="Acme", **facts)


def intermediary(**facts: Any) -> Any:
    return IntermediaryFactory.create(taxpayer__tin="C9876543210", taxpayer__name="Agent", **facts)


def system_user(**facts: Any) -> Any:
    return SystemUserFactory.create(client_id=CLIENT_ID, name="ERP", **facts)


def secret(**facts: Any) -> Any:
    return CredentialFactory.create(
        system_user=system_user(),
        clear=CLEAR,
        created_at=AT - 9 * DAY,
        **facts,
    )


def granted_pair() -> dict[str, Any]:
    pair = {"taxpayer": taxpayer(), "intermediary": intermediary()}
    GrantedPermissionFactory.create(**pair)
    return pair


CASES = [
    Case(
        "register_taxpayer",
        lambda: {"taxpayer": TaxpayerId("C1234567890"), "name": "Acme"},
        ("register_taxpayer", "taxpayer", "C1234567890 Acme"),
        after={"tin": "C1234567890", "rob": "", "name": "Acme", "is_active": True},
    ),
    Case(
        "import_registry",
        lambda: {
            "parsed": read_taxpayers(
                io.BytesIO(b"tin,rob,name,active\nC1234567890,12345,Acme,no"), Notation()
            ),
            "source": "march.csv",
        },
        ("import_registry", "taxpayer", "C1234567890:12345 Acme"),
        after={"tin": "C1234567890", "rob": "12345", "name": "Acme", "is_active": False},
        reason="file march.csv",
    ),
    Case(
        "rename_taxpayer",
        lambda: {"taxpayer": taxpayer(), "name": "New", "reason": "merger"},
        ("rename_taxpayer", "taxpayer", "C1234567890 New"),
        before={"name": "Acme"},
        after={"name": "New"},
        reason="merger",
    ),
    Case(
        "set_taxpayer_active",
        lambda: {"taxpayer": taxpayer(), "is_active": False, "reason": "closed"},
        ("deactivate_taxpayer", "taxpayer", "C1234567890 Acme"),
        before={"is_active": True},
        after={"is_active": False},
        reason="closed",
    ),
    Case(
        "register_intermediary",
        lambda: {"taxpayer": taxpayer(), "until": AT + DAY},
        ("register_intermediary", "intermediary", "C1234567890 Acme"),
        after={"is_active": True, "active_until": "2026-03-02T12:00:00+00:00"},
    ),
    Case(
        "set_intermediary_active",
        lambda: {
            "intermediary": intermediary(),
            "is_active": False,
            "until": None,
            "reason": "fraud",
        },
        ("change_intermediary", "intermediary", "C9876543210 Agent"),
        before={"is_active": True},
        after={"is_active": False},
        reason="fraud",
    ),
    Case(
        "grant_permission",
        lambda: {
            "taxpayer": taxpayer(),
            "intermediary": intermediary(),
            "codes": [VIEW, SUBMIT],
        },
        ("grant_permission", "grantedpermission", "C1234567890 → C9876543210"),
        after={"codes": [SUBMIT, VIEW], "valid_from": WHEN, "valid_until": None},
    ),
    Case(
        "revoke_permission",
        lambda: {
            "permission": GrantedPermissionFactory.create(
                taxpayer=taxpayer(), intermediary=intermediary()
            ),
            "reason": "over",
        },
        ("revoke_permission", "grantedpermission", "C1234567890 → C9876543210"),
        before={"revoked_at": None},
        after={"revoked_at": WHEN},
        reason="over",
    ),
    Case(
        "revoke_codes",
        lambda: {**granted_pair(), "codes": [SUBMIT, VIEW], "reason": "over"},
        ("revoke_permission", "grantedpermission", "C1234567890 → C9876543210"),
        before={"revoked_at": None},
        after={"revoked_at": WHEN},
        reason="over",
    ),
    Case(
        "set_permission_code",
        lambda: {"code": "documents:view", "description": "See documents"},
        ("set_permission_code", "permissioncode", "documents:view"),
        before={"description": "View the taxpayer's documents"},
        after={"description": "See documents"},
    ),
    Case(
        "change_system_user",
        lambda: {
            "system_user": system_user(),
            "name": "ERP",
            "logins_per_minute": 60,
            "reason": "busy",
        },
        ("change_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"logins_per_minute": 12},
        after={"logins_per_minute": 60},
        reason="busy",
    ),
    Case(
        "extend_system_user",
        lambda: {
            "system_user": system_user(expires_at=AT - DAY),
            "expires_at": None,
            "reason": "paid",
        },
        ("extend_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"expires_at": BEFORE},
        after={"expires_at": None},
        reason="paid",
    ),
    Case(
        "extend",
        lambda: {
            "record": GrantedPermissionFactory.create(
                taxpayer=taxpayer(),
                intermediary=intermediary(),
                valid_from=AT - DAY,
                valid_until=AT + DAY,
            ),
            "until": None,
            "reason": "renewed",
        },
        ("extend_permission", "grantedpermission", "C1234567890 → C9876543210"),
        before={"valid_until": "2026-03-02T12:00:00+00:00"},
        after={"valid_until": None},
        reason="renewed",
    ),
    Case(
        "end_earlier",
        lambda: {
            "record": intermediary(active_until=AT + 9 * DAY),
            "until": AT + DAY,
            "reason": "contract ended",
        },
        ("change_intermediary", "intermediary", "C9876543210 Agent"),
        before={"active_until": "2026-03-10T12:00:00+00:00"},
        after={"active_until": "2026-03-02T12:00:00+00:00"},
        reason="contract ended",
    ),
    Case(
        "block_system_user",
        lambda: {"system_user": system_user(), "reason": "leaked"},
        ("block_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"blocked_at": None, "blocked_by": "", "blocked_reason": ""},
        after={"blocked_at": WHEN, "blocked_by": "alice", "blocked_reason": "leaked"},
        reason="leaked",
    ),
    Case(
        "bind_tokens",
        lambda: {
            "system_user": system_user(),
            "binding": TokenBinding.DPOP,
            "reason": "asked by letter",
        },
        ("change_login_method", "systemuser", f"{CLIENT_ID} ERP"),
        before={"token_binding": ""},
        after={"token_binding": "dpop"},
        reason="asked by letter",
    ),
    Case(
        "unblock_system_user",
        lambda: {
            "system_user": system_user(
                blocked_at=AT - DAY, blocked_by="bob", blocked_reason="leaked"
            ),
            "reason": "replaced",
        },
        ("unblock_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"blocked_at": BEFORE, "blocked_by": "bob", "blocked_reason": "leaked"},
        after={"blocked_at": None, "blocked_by": "", "blocked_reason": ""},
        reason="replaced",
    ),
    Case(
        "retire_secret",
        lambda: {"secret": secret(), "last_moment": AT + DAY, "reason": "moved"},
        ("retire_secret", "systemuser", f"{CLIENT_ID} ERP"),
        before={**SECRET, "secret_expires_at": "2027-02-20T12:00:00+00:00"},
        after={**SECRET, "secret_expires_at": "2026-03-02T12:00:00+00:00"},
        reason="moved",
    ),
    Case(
        "change_secret",
        lambda: {"secret": secret(), "allowed_networks": ["192.0.2.7"], "reason": "stolen"},
        ("change_secret", "systemuser", f"{CLIENT_ID} ERP"),
        before={**SECRET, "allowed_networks": ""},
        after={**SECRET, "allowed_networks": "192.0.2.7/32"},
        reason="stolen",
    ),
    Case(
        "limit_system_user",
        lambda: {
            "system_user": system_user(taxpayer=intermediary().taxpayer),
            "permissions": [VIEW, SUBMIT, VIEW],
            "taxpayers": [taxpayer().identifier],
            "reason": "one branch",
        },
        ("limit_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"allowed_permissions": "", "allowed_taxpayers": ""},
        after={"allowed_permissions": f"{SUBMIT} {VIEW}", "allowed_taxpayers": "C1234567890"},
        reason="one branch",
    ),
    Case(
        "register_client_keys",
        lambda: {"system_user": system_user(**WITH_KEY), "keys": KEY, "expires_at": AT + DAY},
        ("register_client_key", "systemuser", f"{CLIENT_ID} ERP"),
        after={
            "secret": "…2026",
            "credential": "key",
            "kid": "march-2026",
            "secret_expires_at": "2026-03-02T12:00:00+00:00",
        },
    ),
    Case(
        "register_client_certificate",
        lambda: {
            "system_user": system_user(token_endpoint_auth_method="tls_client_auth"),
            "text": "erp.example.com",
            "kind": NameKind.SAN_DNS,
            "expires_at": AT + DAY,
        },
        ("register_client_certificate", "systemuser", f"{CLIENT_ID} ERP"),
        after={
            "secret": "…5cb4",
            "credential": "certificate",
            "certificate_name": "tls_client_auth_san_dns:erp.example.com",
            "secret_expires_at": "2026-03-02T12:00:00+00:00",
        },
    ),
    Case(
        "revoke_secret",
        lambda: {"secret": secret(), "reason": "leaked"},
        ("revoke_secret", "systemuser", f"{CLIENT_ID} ERP"),
        before={**SECRET, "secret_revoked_at": None},
        after={**SECRET, "secret_revoked_at": WHEN},
        reason="leaked",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.service for case in CASES])
def test_a_change_is_recorded_once_with_everything(case: Case) -> None:
    getattr(services, case.service)(**case.arguments(), by=Author("alice", "192.0.2.7"), at=AT)
    change = Change.objects.get()
    assert (change.action, change.object_type, change.label) == case.record
    assert (change.by, change.address, change.at) == ("alice", "192.0.2.7", AT)
    assert (change.before, change.after, change.reason) == (case.before, case.after, case.reason)
    assert change.object_id


def test_new_credentials_are_recorded_with_the_hint_and_never_the_secret() -> None:
    issued = services.register_system_user(
        taxpayer=taxpayer(), name="ERP", by=Author("alice"), at=AT
    )
    change = Change.objects.get()
    assert change.action == "issue_credentials"
    assert change.address is None
    assert change.after == {
        "taxpayer": "C1234567890",
        "name": "ERP",
        "scopes": "InvoicingAPI",
        "logins_per_minute": 12,
        "expires_at": None,
        "secret": f"…{issued.credentials.client_secret[-4:]}",
        "credential": "secret",
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
    }


def test_a_rotation_records_the_new_end_of_the_old_secret_too() -> None:
    old = secret()
    issued = services.issue_secret(
        system_user=old.system_user, retire_old_at=AT + DAY, by=Author("alice"), at=AT
    )
    retired, issued_change = Change.objects.order_by("id")
    assert (retired.action, issued_change.action) == ("retire_secret", "rotate_secret")
    assert retired.before == {**SECRET, "secret_expires_at": "2027-02-20T12:00:00+00:00"}
    assert retired.after == {**SECRET, "secret_expires_at": "2026-03-02T12:00:00+00:00"}
    assert issued_change.after == {
        "secret": str(issued.secret),
        "credential": "secret",
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
    }


def changing_services() -> set[str]:
    functions = {name for name in services.__all__ if inspect.isfunction(getattr(services, name))}
    return functions - {"preview_registry", "max_rows", "one_import_at_a_time"}  # change nothing


def test_every_service_is_in_these_tests() -> None:
    # Records of the login methods are also in tests/client_auth/test_services.py.
    assert changing_services() == {service for service, _ in CALLS}


def test_every_service_takes_keyword_arguments_only_and_needs_who_and_when() -> None:
    for name in changing_services():
        parameters = inspect.signature(getattr(services, name)).parameters
        assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}, name
        assert {"by", "at"} <= parameters.keys(), name


def test_neither_a_secret_nor_its_hash_is_ever_in_the_history() -> None:
    by: dict[str, Any] = {"by": Author("alice"), "at": AT}
    one = services.register_system_user(taxpayer=taxpayer(), name=f"ERP {CLEAR}", **by)
    two = services.issue_secret(system_user=one.system_user, **by)
    services.revoke_credential(credential=two.secret, reason=f"leaked: {CLEAR}", **by)
    services.block_system_user(system_user=one.system_user, reason=f"uses {CLEAR}", **by)
    stored = json.dumps(list(Change.objects.values()), default=str)
    for clear in (CLEAR, one.credentials.client_secret, two.credentials.client_secret):
        assert clear not in stored
        assert clear[8:] not in stored
        assert hash_secret(clear).removeprefix("sha256$") not in stored
    assert "leaked: cs_test_[hidden]" in stored


# Those whose record shows a part of what is generated.
MORE: dict[str, Callable[[], dict[str, Any]]] = {
    "register_system_user": lambda: {"taxpayer": taxpayer(), "name": "ERP"},
    "register_system_user_with_keys": lambda: {"taxpayer": taxpayer(), "name": "ERP", "keys": KEY},
    "issue_secret": lambda: {"system_user": secret().system_user, "retire_old_at": AT + DAY},
    "use_private_key": lambda: {"system_user": system_user(), "keys": KEY, "reason": "new"},
    "use_client_secret": lambda: {"system_user": system_user(**WITH_KEY), "reason": "new"},
    "use_certificate": lambda: {
        "system_user": secret().system_user,
        "text": "CN=erp",
        "reason": "new",
        "kind": NameKind.SUBJECT_DN,
    },
}
CALLS = [(case.service, case.arguments) for case in CASES] + list(MORE.items())


def registry() -> dict[str, list[dict[str, Any]]]:
    models = apps.get_app_config("taxpayers").get_models()
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_a_change_that_cannot_be_recorded_is_not_made(
    name: str, arguments: Callable[[], dict[str, Any]], settings: Settings
) -> None:
    settings.MTLS_URL = "https://mtls.example.org"
    given = arguments()
    before = registry()
    with writing_fails("changes"):
        with pytest.raises((DatabaseError, services.ServiceError)):
            getattr(services, name)(**given, by=Author("alice"), at=AT)
        assert registry() == before
    getattr(services, name)(**given, by=Author("alice"), at=AT)
    assert registry() != before


def test_a_long_name_never_cuts_the_identifier_off_the_label() -> None:
    row = TaxpayerFactory.create(tin="C1234567890", name="x" * 255)
    services.rename_taxpayer(
        taxpayer=row, name="y" * 255, reason="longer", by=Author("a" * 200), at=AT
    )
    change = Change.objects.get()
    assert change.label.startswith("C1234567890 yyy")
    assert (len(change.label), len(change.by)) == (255, 150)
