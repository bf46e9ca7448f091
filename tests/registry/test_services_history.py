"""Every change of state is recorded with who, when, what and why (contract 4)."""

import contextlib
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
from taxpayers.credentials import hash_secret
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change
from taxpayers.services import Author
from tests.certificates.certificate_erp import SUBJECT, certificate
from tests.support import make
from tests.support.factories import SUBMIT, VIEW
from tests.support.outages import writing_fails

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
WHEN, BEFORE, TOMORROW = (f"2026-{day}T12:00:00+00:00" for day in ("03-01", "02-28", "03-02"))
BLOCKED = {"blocked_at": AT - DAY, "blocked_by": "bob", "blocked_reason": "leaked"}
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
KEY = (
    '{"kty": "OKP", "crv": "Ed25519", "kid": "march-2026",'
    ' "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
)
FILE = b"tin,rob,name,active\nC1234567890,12345,Acme,no"
SECRET = {"secret": "…pRB0", "credential": "secret"}
WITH_KEY = {"token_endpoint_auth_method": "private_key_jwt"}
CLEAR = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"


TAXPAYER, AGENT = ("taxpayer", "C1234567890 Acme"), ("intermediary", "C9876543210 Agent")
PAIR, USER = ("grantedpermission", "C1234567890 → C9876543210"), ("systemuser", f"{CLIENT_ID} ERP")
Arguments = Callable[[], dict[str, Any]]


@dataclass
class Case:
    service: str
    arguments: Arguments  # besides the reason, where it needs one
    changed: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # before, after
    about: tuple[str, str] = USER  # kind of the object, label
    added: dict[str, Any] = field(default_factory=dict)
    same: dict[str, Any] = field(default_factory=dict)
    action: str = ""  # as the service
    reason: str = ""  # as given

    def __str__(self) -> str:
        return f"{self.service} {self.action}".rstrip()

    @property
    def before(self) -> dict[str, Any]:
        return self.same | {name: before for name, (before, _) in self.changed.items()}

    @property
    def after(self) -> dict[str, Any]:
        return self.same | self.added | {name: after for name, (_, after) in self.changed.items()}


# What only adds to the registry needs no reason.
WITHOUT_REASON = {
    *("register_taxpayer", "import_registry", "register_intermediary", "grant_permission"),
    "set_permission_code",
}


def given_to(service: str, arguments: Arguments) -> dict[str, Any]:
    return ({} if service in WITHOUT_REASON else {"reason": "a test"}) | arguments()


def taxpayer(**facts: Any) -> Any:
    return make.taxpayer(tin="C1234567890", name="Acme", **facts)


def intermediary(**facts: Any) -> Any:
    return make.intermediary(taxpayer__tin="C9876543210", taxpayer__name="Agent", **facts)


def system_user(**facts: Any) -> Any:
    return make.system_user(client_id=CLIENT_ID, name="ERP", **facts)


def secret(**facts: Any) -> Any:
    return make.credential(system_user=system_user(), clear=CLEAR, created_at=AT - 9 * DAY, **facts)


def permission(**facts: Any) -> Any:
    return make.permission(taxpayer=taxpayer(), intermediary=intermediary(), **facts)


def granted_pair() -> dict[str, Any]:
    granted = permission()
    return {"taxpayer": granted.taxpayer, "intermediary": granted.intermediary}


def service_of(name: str) -> Callable[..., Any]:
    imports = {"import_registry": services.IMPORT_KINDS["taxpayers"].run}
    return imports.get(name) or getattr(services, name)


CASES = [
    Case(
        "register_taxpayer",
        lambda: {"taxpayer": TaxpayerId("C1234567890"), "name": "Acme"},
        about=TAXPAYER,
        added={"tin": "C1234567890", "rob": "", "name": "Acme", "is_active": True},
    ),
    Case(
        "import_registry",
        lambda: {
            "parsed": services.IMPORT_KINDS["taxpayers"].read(io.BytesIO(FILE)),
            "source": "march.csv",
        },
        about=("taxpayer", "C1234567890:12345 Acme"),
        added={"tin": "C1234567890", "rob": "12345", "name": "Acme", "is_active": False},
        reason="file march.csv",
    ),
    Case(
        "rename_taxpayer",
        lambda: {"taxpayer": taxpayer(), "name": "New"},
        {"name": ("Acme", "New")},
        ("taxpayer", "C1234567890 New"),
    ),
    Case(
        "set_taxpayer_active",
        lambda: {"taxpayer": taxpayer(), "is_active": False},
        {"is_active": (True, False)},
        TAXPAYER,
        action="deactivate_taxpayer",
    ),
    Case(
        "register_intermediary",
        lambda: {"taxpayer": taxpayer(), "until": AT + DAY},
        about=("intermediary", "C1234567890 Acme"),
        added={"is_active": True, "active_until": TOMORROW},
    ),
    Case(
        "set_intermediary_active",
        lambda: {"intermediary": intermediary(), "is_active": False},
        {"is_active": (True, False)},
        AGENT,
        action="change_intermediary",
    ),
    Case(
        "grant_permission",
        lambda: {"taxpayer": taxpayer(), "intermediary": intermediary(), "codes": [VIEW, SUBMIT]},
        about=PAIR,
        added={"codes": [SUBMIT, VIEW], "valid_from": WHEN, "valid_until": None},
    ),
    Case(
        "revoke_permission",
        lambda: {"permission": permission()},
        {"revoked_at": (None, WHEN)},
        PAIR,
    ),
    Case(
        "revoke_codes",
        lambda: {**granted_pair(), "codes": [SUBMIT, VIEW]},
        {"revoked_at": (None, WHEN)},
        PAIR,
        action="revoke_permission",
    ),
    Case(
        "set_permission_code",
        lambda: {"code": "documents:view", "description": "See documents"},
        {"description": ("View the taxpayer's documents", "See documents")},
        ("permissioncode", "documents:view"),
    ),
    Case(
        "change_system_user",
        lambda: {"system_user": system_user(), "name": "ERP", "logins_per_minute": 60},
        {"logins_per_minute": (12, 60)},
    ),
    Case(
        "extend_system_user",
        lambda: {"system_user": system_user(expires_at=AT - DAY), "expires_at": None},
        {"expires_at": (BEFORE, None)},
    ),
    Case(
        "extend",
        lambda: {"record": permission(valid_from=AT - DAY, valid_until=AT + DAY), "until": None},
        {"valid_until": (TOMORROW, None)},
        PAIR,
        action="extend_permission",
    ),
    Case(
        "end_earlier",
        lambda: {"record": intermediary(active_until=AT + 9 * DAY), "until": AT + DAY},
        {"active_until": ("2026-03-10T12:00:00+00:00", TOMORROW)},
        AGENT,
        action="change_intermediary",
    ),
    Case(
        "block_system_user",
        lambda: {"system_user": system_user()},
        {"blocked_at": (None, WHEN), "blocked_by": ("", "alice"), "blocked_reason": ("", "a test")},
    ),
    Case(
        "unblock_system_user",
        lambda: {"system_user": system_user(**BLOCKED)},
        {"blocked_at": (BEFORE, None), "blocked_by": ("bob", ""), "blocked_reason": ("leaked", "")},
    ),
    Case(
        "bind_tokens",
        lambda: {"system_user": system_user(), "binding": TokenBinding.DPOP},
        {"token_binding": ("", "dpop")},
        action="change_login_method",
    ),
    Case(
        "retire_credential",
        lambda: {"credential": secret(), "last_moment": AT + DAY},
        {"secret_expires_at": ("2027-02-20T12:00:00+00:00", TOMORROW)},
        same=SECRET,
        action="retire_secret",
    ),
    Case(
        "change_credential",
        lambda: {"credential": secret(), "allowed_networks": ["192.0.2.7"]},
        {"allowed_networks": ("", "192.0.2.7/32")},
        same=SECRET,
        action="change_secret",
    ),
    Case(
        "limit_system_user",
        lambda: {
            "system_user": system_user(taxpayer=intermediary().taxpayer),
            "permissions": [VIEW, SUBMIT, VIEW],
            "taxpayers": [taxpayer().identifier],
        },
        {"allowed_permissions": ("", f"{SUBMIT} {VIEW}"), "allowed_taxpayers": ("", "C1234567890")},
    ),
    Case(
        "register_public_credential",
        lambda: {"system_user": system_user(**WITH_KEY), "keys": KEY, "expires_at": AT + DAY},
        added={
            "secret": "…2026",
            "credential": "key",
            "kid": "march-2026",
            "secret_expires_at": TOMORROW,
        },
        action="register_client_key",
    ),
    Case(
        "register_public_credential",
        lambda: {
            "system_user": system_user(token_endpoint_auth_method="tls_client_auth"),
            "certificate": certificate().pem,
            "expires_at": AT + DAY,
        },
        added={
            "secret": "…08f3",
            "credential": "certificate",
            "secret_expires_at": TOMORROW,
            "certificate_name": SUBJECT,
        },
        action="register_client_certificate",
    ),
    Case(
        "revoke_credential",
        lambda: {"credential": secret()},
        {"secret_revoked_at": (None, WHEN)},
        same=SECRET,
        action="revoke_secret",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_is_recorded_with_everything_and_again_changes_nothing(case: Case) -> None:
    given, service = given_to(case.service, case.arguments), service_of(case.service)
    service(**given, by=Author("alice", "192.0.2.7"), at=AT)
    change = Change.objects.get()
    assert change.action == (case.action or case.service)
    assert (change.object_type, change.label) == case.about
    assert (change.by, change.address, change.at) == ("alice", "192.0.2.7", AT)
    assert (change.before, change.after) == (case.before, case.after)
    assert change.reason == given.get("reason", case.reason)
    assert change.object_id
    before = registry()
    with contextlib.suppress(services.ServiceError):  # where it is refused, because it is done
        service(**given, by=Author("bob"), at=AT + timedelta(hours=1))
    assert registry() == before


def test_a_rotation_records_the_new_end_of_the_old_secret_too() -> None:
    old = secret()
    issued = services.issue_secret(
        reason="a test",
        system_user=old.system_user,
        retire_old_at=AT + DAY,
        by=Author("alice"),
        at=AT,
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


def test_every_service_is_in_these_tests() -> None:
    # Records of the login methods are also in tests/client_auth/test_services.py.
    functions = {name for name, value in vars(services).items() if inspect.isfunction(value)}
    others = {"one_import_at_a_time"}  # which changes nothing
    assert functions - others == {service for service, _ in CALLS} - {"import_registry"}


def test_neither_a_secret_nor_its_hash_is_ever_in_the_history() -> None:
    by: dict[str, Any] = {"by": Author("alice"), "at": AT}
    one = services.register_system_user(
        reason="a test", taxpayer=taxpayer(), name=f"ERP {CLEAR}", **by
    )
    two = services.issue_secret(reason="a test", system_user=one.system_user, **by)
    services.revoke_credential(credential=two.secret, reason=f"leaked: {CLEAR}", **by)
    services.block_system_user(system_user=one.system_user, reason=f"uses {CLEAR}", **by)
    stored = json.dumps(list(Change.objects.values()), default=str)
    for clear in (CLEAR, one.credentials.client_secret, two.credentials.client_secret):
        assert clear not in stored
        assert clear[8:] not in stored
        assert hash_secret(clear).removeprefix("sha256$") not in stored
    assert "leaked: cs_test_[hidden]" in stored


# Those whose record shows a part of what is generated.
DN = {"certificate": certificate().pem}
WITHOUT_SECRET = "register_system_user_without_secret"
MORE: list[tuple[str, Arguments]] = [
    ("register_system_user", lambda: {"taxpayer": taxpayer(), "name": "ERP"}),
    (WITHOUT_SECRET, lambda: {"taxpayer": taxpayer(), "name": "ERP", "keys": KEY}),
    (WITHOUT_SECRET, lambda: {"taxpayer": taxpayer(), "name": "ERP", **DN}),
    ("issue_secret", lambda: {"system_user": secret().system_user, "retire_old_at": AT + DAY}),
    ("use_public_credential", lambda: {"system_user": system_user(), "keys": KEY}),
    ("use_client_secret", lambda: {"system_user": system_user(**WITH_KEY)}),
    ("use_public_credential", lambda: {"system_user": secret().system_user, **DN}),
]
CALLS = [(case.service, case.arguments) for case in CASES] + MORE
NEED_REASON = [call for call in CALLS if call[0] not in WITHOUT_REASON]


def ids_of(calls: list[tuple[str, Arguments]]) -> list[str]:
    return [f"{name}-{number}" for number, (name, _) in enumerate(calls)]


@pytest.mark.parametrize(("name", "arguments"), NEED_REASON, ids=ids_of(NEED_REASON))
def test_a_change_that_needs_a_reason_is_not_made_without_one(
    name: str, arguments: Arguments, settings: Settings
) -> None:
    settings.MTLS_URL = "https://mtls.example.org"
    given = arguments()
    for reason in ("", "  \t ", "a" * 501, "two\nlines"):
        with pytest.raises(services.ServiceError, match="a reason"):
            service_of(name)(**given, reason=reason, by=Author("alice"), at=AT)
    assert not Change.objects.exists()


def test_a_permission_that_has_ended_is_not_granted_anew_without_a_reason() -> None:
    ended = permission(valid_from=AT - 2 * DAY, valid_until=AT - DAY)
    with pytest.raises(services.ServiceError, match="a reason"):
        services.extend(record=ended, until=AT + DAY, by=Author("alice"), at=AT)


def registry() -> dict[str, list[dict[str, Any]]]:
    models = apps.get_app_config("taxpayers").get_models()
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=ids_of(CALLS))
def test_a_change_that_cannot_be_recorded_is_not_made(
    name: str, arguments: Arguments, settings: Settings
) -> None:
    settings.MTLS_URL = "https://mtls.example.org"
    given = given_to(name, arguments)
    before = registry()
    with writing_fails("changes"):
        with pytest.raises((DatabaseError, services.ServiceError)):
            service_of(name)(**given, by=Author("alice"), at=AT)
        assert registry() == before
    service_of(name)(**given, by=Author("alice"), at=AT)
    assert registry() != before
