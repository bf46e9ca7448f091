"""Every change of state is kept with who, when, what and why (contract 4)."""

import inspect
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers import services
from taxpayers.credentials import hash_secret
from taxpayers.files.taxpayer_rows import read_entries
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.models import Change
from taxpayers.services import Author
from tests.support.factories import (
    SUBMIT,
    VIEW,
    ClientSecretFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
WHEN, BEFORE = "2026-03-01T12:00:00+00:00", "2026-02-28T12:00:00+00:00"
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
CLEAR = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"


@dataclass
class ChangeContext:
    """A service called once, and the one entry that it must leave."""

    service: str
    arguments: Callable[[], dict[str, Any]]
    entry: tuple[str, str, str]  # action, kind of the object, label
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
    return ClientSecretFactory.create(
        system_user=system_user(),
        clear=CLEAR,
        created_at=AT - 9 * DAY,
        **facts,
    )


def granted_pair() -> dict[str, Any]:
    pair = {"taxpayer": taxpayer(), "intermediary": intermediary()}
    GrantedPermissionFactory.create(**pair)
    return pair


DEEDS = [
    ChangeContext(
        "register_taxpayer",
        lambda: {"taxpayer": TaxpayerId("C1234567890"), "name": "Acme"},
        ("register_taxpayer", "taxpayer", "C1234567890 Acme"),
        after={"tin": "C1234567890", "rob": "", "name": "Acme", "is_active": True},
    ),
    ChangeContext(
        "import_registry",
        lambda: {
            "reading": read_entries(
                io.BytesIO(b"tin,rob,name,active\nC1234567890,12345,Acme,no"), Notation()
            ),
            "source": "march.csv",
        },
        ("import_registry", "taxpayer", "C1234567890:12345 Acme"),
        after={"tin": "C1234567890", "rob": "12345", "name": "Acme", "is_active": False},
        reason="file march.csv",
    ),
    ChangeContext(
        "rename_taxpayer",
        lambda: {"taxpayer": taxpayer(), "name": "New", "reason": "merger"},
        ("rename_taxpayer", "taxpayer", "C1234567890 New"),
        before={"name": "Acme"},
        after={"name": "New"},
        reason="merger",
    ),
    ChangeContext(
        "set_taxpayer_active",
        lambda: {"taxpayer": taxpayer(), "is_active": False, "reason": "closed"},
        ("deactivate_taxpayer", "taxpayer", "C1234567890 Acme"),
        before={"is_active": True},
        after={"is_active": False},
        reason="closed",
    ),
    ChangeContext(
        "register_intermediary",
        lambda: {"taxpayer": taxpayer(), "until": AT + DAY},
        ("register_intermediary", "intermediary", "C1234567890 Acme"),
        after={"is_active": True, "active_until": "2026-03-02T12:00:00+00:00"},
    ),
    ChangeContext(
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
    ChangeContext(
        "grant_permission",
        lambda: {
            "taxpayer": taxpayer(),
            "intermediary": intermediary(),
            "codes": [VIEW, SUBMIT],
        },
        ("grant_permission", "grantedpermission", "C1234567890 → C9876543210"),
        after={"codes": [SUBMIT, VIEW], "valid_from": WHEN, "valid_until": None},
    ),
    ChangeContext(
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
    ChangeContext(
        "revoke_codes",
        lambda: {**granted_pair(), "codes": [SUBMIT, VIEW], "reason": "over"},
        ("revoke_permission", "grantedpermission", "C1234567890 → C9876543210"),
        before={"revoked_at": None},
        after={"revoked_at": WHEN},
        reason="over",
    ),
    ChangeContext(
        "set_permission_code",
        lambda: {"code": "documents:view", "description": "See documents"},
        ("set_permission_code", "permissioncode", "documents:view"),
        before={"description": "View the taxpayer's documents"},
        after={"description": "See documents"},
    ),
    ChangeContext(
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
    ChangeContext(
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
    ChangeContext(
        "block_system_user",
        lambda: {"system_user": system_user(), "reason": "leaked"},
        ("block_system_user", "systemuser", f"{CLIENT_ID} ERP"),
        before={"blocked_at": None, "blocked_by": "", "blocked_reason": ""},
        after={"blocked_at": WHEN, "blocked_by": "alice", "blocked_reason": "leaked"},
        reason="leaked",
    ),
    ChangeContext(
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
    ChangeContext(
        "retire_secret",
        lambda: {"secret": secret(), "last_moment": AT + DAY, "reason": "moved"},
        ("retire_secret", "systemuser", f"{CLIENT_ID} ERP"),
        before={"secret": "…pRB0", "secret_expires_at": "2027-02-20T12:00:00+00:00"},
        after={"secret": "…pRB0", "secret_expires_at": "2026-03-02T12:00:00+00:00"},
        reason="moved",
    ),
    ChangeContext(
        "revoke_secret",
        lambda: {"secret": secret(), "reason": "leaked"},
        ("revoke_secret", "systemuser", f"{CLIENT_ID} ERP"),
        before={"secret": "…pRB0", "secret_revoked_at": None},
        after={"secret": "…pRB0", "secret_revoked_at": WHEN},
        reason="leaked",
    ),
]


@pytest.mark.parametrize("deed", DEEDS, ids=[deed.service for deed in DEEDS])
def test_a_change_leaves_one_entry_that_tells_it_whole(deed: ChangeContext) -> None:
    getattr(services, deed.service)(**deed.arguments(), by=Author("alice", "192.0.2.7"), at=AT)
    change = Change.objects.get()
    assert (change.action, change.object_type, change.label) == deed.entry
    assert (change.by, change.address, change.at) == ("alice", "192.0.2.7", AT)
    assert (change.before, change.after, change.reason) == (deed.before, deed.after, deed.reason)
    assert change.object_id


def test_new_credentials_leave_an_entry_with_the_hint_and_never_the_secret() -> None:
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
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
    }


def test_a_rotation_tells_what_became_of_the_old_secret_too() -> None:
    old = secret()
    issued = services.issue_secret(
        system_user=old.system_user, retire_old_at=AT + DAY, by=Author("alice"), at=AT
    )
    retired, issued_entry = Change.objects.order_by("id")
    assert (retired.action, issued_entry.action) == ("retire_secret", "rotate_secret")
    assert retired.before == {"secret": "…pRB0", "secret_expires_at": "2027-02-20T12:00:00+00:00"}
    assert retired.after == {"secret": "…pRB0", "secret_expires_at": "2026-03-02T12:00:00+00:00"}
    assert issued_entry.after == {
        "secret": str(issued.secret),
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
    }


def changing_services() -> set[str]:
    functions = {name for name in services.__all__ if inspect.isfunction(getattr(services, name))}
    return functions - {"preview_registry"}  # it only looks


def test_every_service_is_in_these_tests() -> None:
    assert changing_services() == {deed.service for deed in DEEDS} | {
        "register_system_user",
        "issue_secret",
    }


def test_every_service_takes_its_arguments_by_name_and_asks_who_and_when() -> None:
    for name in changing_services():
        parameters = inspect.signature(getattr(services, name)).parameters
        assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}, name
        assert {"by", "at"} <= parameters.keys(), name


def test_neither_a_secret_nor_its_hash_is_ever_in_the_history() -> None:
    by: dict[str, Any] = {"by": Author("alice"), "at": AT}
    one = services.register_system_user(taxpayer=taxpayer(), name=f"ERP {CLEAR}", **by)
    two = services.issue_secret(system_user=one.system_user, **by)
    services.revoke_secret(secret=two.secret, reason=f"leaked: {CLEAR}", **by)
    services.block_system_user(system_user=one.system_user, reason=f"uses {CLEAR}", **by)
    kept = json.dumps(list(Change.objects.values()), default=str)
    for clear in (CLEAR, one.credentials.client_secret, two.credentials.client_secret):
        assert clear not in kept
        assert clear[8:] not in kept
        assert hash_secret(clear).removeprefix("sha256$") not in kept
    assert "leaked: cs_test_[hidden]" in kept


def test_a_change_that_fails_leaves_neither_a_change_nor_an_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = system_user()

    def disk_full(*_: Any, **__: Any) -> None:
        raise OSError

    monkeypatch.setattr(Change, "save", disk_full)
    with pytest.raises(OSError):  # noqa: PT011 - any error of the history
        services.block_system_user(system_user=user, reason="leaked", by=Author("alice"), at=AT)
    user.refresh_from_db()
    assert user.blocked_at is None


def test_a_long_name_never_cuts_the_identifier_off_the_label() -> None:
    row = TaxpayerFactory.create(tin="C1234567890", name="x" * 255)
    services.rename_taxpayer(
        taxpayer=row, name="y" * 255, reason="longer", by=Author("a" * 200), at=AT
    )
    change = Change.objects.get()
    assert change.label.startswith("C1234567890 yyy")
    assert (len(change.label), len(change.by)) == (255, 150)
