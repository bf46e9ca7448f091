"""Each operation, on each door, by each role, each scope and an operator: who does it, and how.

Every attempt is made for real, with values that are right, on a client of an ERP system and on one
of the management API. A new page or address of a system user needs a row in ROWS. Operations that
need only a reason have their row from their record; every door does the same then.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from identity.api.urls import records
from identity.staff.accounts.changes import accounts, sign_in
from identity.staff.accounts.roles import ROLES
from identity.staff.models import StaffAccount
from taxpayers.duties import MANAGEMENT_SCOPES, Duty
from taxpayers.models import (
    Change,
    GrantedPermission,
    Intermediary,
    PermissionRequest,
    SystemUser,
    Taxpayer,
)
from taxpayers.operations import ByReason, Operation, Reason
from taxpayers.services import ends, granted_permissions, intermediaries, system_users, taxpayers
from tests.certificates.certificate_erp import certificate
from tests.client_auth.key_erp import new_pair
from tests.every_address.test_staff import TASKS, plain_refusals
from tests.management_api.portal import SCOPES, Portal, new_portal
from tests.support import make
from tests.support.accounts import new_staff, with_totp
from tests.support.command_line import run
from tests.support.factories import SUBMIT, TaxpayerFactory
from tests.support.staff import hidden_of, list_url, staff_client, task_url, text_of
from tokens.models import ProtectedApi
from tokens.protected_apis import registration

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_refusals")]
__all__ = ["plain_refusals"]  # the fixture
KEY = json.dumps(new_pair().public_jwk)
CONNECTION = {"public_jwk": KEY, "intermediary": None, "codes": "InvoicingAPI", "name": "ERP"}
WHY = {"reason": "a test"}
LATER, EARLIER = "2037-12-31", str((timezone.now() + timedelta(days=9)).date())
ENDS = {"expires_at": timezone.now() + timedelta(days=99)}
KEY_CLIENT = {"token_endpoint_auth_method": "private_key_jwt"}
CERTIFICATE_CLIENT = {"token_endpoint_auth_method": "tls_client_auth"}
PEM = {"certificate": certificate().pem}
CHANGE_COMMAND = ("change_system_user", "<CLIENT>")
WITHOUT_RECORD = ("issue_credentials", "import_system_users")
CREDENTIAL, PERMISSION = "/credentials/<SECRET>", "//permissions/<PERMISSION>"
NEW_ERP = {"name": "ERP", "logins_per_minute": 12, "scopes": ["InvoicingAPI"]}


@dataclass(frozen=True)
class Row:
    """How it is done on each door; what is not there has no door.

    What is in <> is replaced by what an attempt is about. `rest`: method, the
    path below the system user, or a whole one, and the body. `file`: a page that imports it.
    """

    duty: str
    page: tuple[str, Mapping[str, Any]] | None = None
    rest: tuple[str, str, Mapping[str, Any]] | None = None
    command: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)  # of the system user before
    of: type[Model] = SystemUser
    file: str = ""
    record: Operation | None = None  # of what is about one record, but for system users

    @property
    def is_about_a_client(self) -> bool:
        return "<CLIENT>" in self.command or (
            self.rest is not None and not self.rest[1].startswith("//")
        )


# "give": a scope of the management API.
ROWS = {
    "register a taxpayer": Row(
        "register",
        ("register_taxpayer", {"identifier": "<NEW>", "name": "Zulaikha Sdn Bhd"}),
        ("POST", "//taxpayers", {"taxpayer": "<NEW>", "name": "Zulaikha Sdn Bhd"}),
        ("register_taxpayer", "<NEW>", "--name", "Zulaikha Sdn Bhd"),
        of=Taxpayer,
    ),
    "import taxpayers": Row(
        "register",
        ("import_registry", {}),
        ("POST", "//imports/taxpayers", {"rows": [{"taxpayer": "<NEW>", "name": "Zulaikha"}]}),
        ("import_registry", "<FILE>"),
        of=Taxpayer,
        file="tin,rob,name\n<NEW>,,Zulaikha\n",
    ),
    "register an intermediary": Row(
        "register",
        ("register_intermediary", {"taxpayer": "<TIN>"}),
        ("POST", "//intermediaries", {"taxpayer": "<TIN>"}),
        ("register_intermediary", "<TIN>"),
        of=Intermediary,
    ),
    "grant a permission": Row(
        "grant",
        ("grant_permission", {"taxpayer": "<TIN>", "intermediary": "<AGENT>", "codes": [SUBMIT]}),
        (
            *("POST", "//permissions"),
            {"taxpayer": "<TIN>", "intermediary": "<AGENT>", "permissions": [SUBMIT]},
        ),
        (
            *("grant_permission", "--taxpayer", "<TIN>", "--intermediary", "<AGENT>"),
            *("--permission", SUBMIT),
        ),
        of=GrantedPermission,
    ),
    "import permissions": Row(
        "grant",
        ("import_permissions", {}),
        (
            *("POST", "//imports/permissions"),
            {"rows": [{"taxpayer": "<TIN>", "intermediary": "<AGENT>", "permissions": [SUBMIT]}]},
        ),
        ("import_registry", "<FILE>", "--kind", "permissions"),
        of=GrantedPermission,
        file=f"taxpayer,intermediary,codes\n<TIN>,<AGENT>,{SUBMIT}\n",
    ),
    "extend_permission": Row(
        "grant",
        ("extend_permission", {"expires": LATER, **WHY}),
        ("POST", f"{PERMISSION}/extend", {"valid_until": LATER, **WHY}),
        ("extend_permission", "<PERMISSION>", "--until", LATER),
        {"valid_until": ENDS["expires_at"]},
        GrantedPermission,
        record=ends.EXTEND_PERMISSION,
    ),
    "end_permission_earlier": Row(
        "grant",
        ("end_permission_earlier", {"expires": EARLIER, **WHY}),
        ("POST", f"{PERMISSION}/end-earlier", {"valid_until": EARLIER, **WHY}),
        ("end_permission_earlier", "<PERMISSION>", "--until", EARLIER),
        {"valid_until": ENDS["expires_at"]},
        GrantedPermission,
        record=ends.END_PERMISSION_EARLIER,
    ),
    "approve a request": Row(
        "grant",
        ("approve_permission_request", {"codes": [SUBMIT]}),
        ("POST", "//permission-requests/<REQUEST>/approve", {"taxpayer": "<TIN>"}),
        ("approve_permission_request", "<REQUEST>"),
        of=PermissionRequest,
    ),
    "approve a connection": Row(
        "issue",
        ("approve_connection", {"codes": ["InvoicingAPI"]}),
        ("POST", "//permission-requests/<REQUEST>/approve-connection", {"taxpayer": "<TIN>"}),
        ("approve_connection", "<REQUEST>"),
        CONNECTION,
        of=PermissionRequest,
    ),
    "decline a connection": Row(
        "issue",
        ("decline_connection", {}),
        ("POST", "//permission-requests/<REQUEST>/decline-connection", {"taxpayer": "<TIN>"}),
        ("decline_connection", "<REQUEST>"),
        CONNECTION,
        of=PermissionRequest,
    ),
    "decline a request": Row(
        "grant",
        ("decline_permission_request", {}),
        ("POST", "//permission-requests/<REQUEST>/decline", {"taxpayer": "<TIN>"}),
        ("decline_permission_request", "<REQUEST>"),
        of=PermissionRequest,
    ),
    "issue_credentials": Row(
        "issue",
        ("issue_credentials", {"taxpayer": "<TIN>", **NEW_ERP, **WHY}),
        ("POST", "//system-users", {"taxpayer": "<TIN>", **NEW_ERP, **WHY}),
        ("issue_credentials", "<TIN>", "--name", "ERP"),
    ),
    "import_system_users": Row(
        "issue",
        ("import_system_users", {}),
        ("POST", "//imports/system-users", {"rows": [{"taxpayer": "<TIN>", "name": "ERP"}]}),
        ("import_registry", "<FILE>", "--kind", "system_users"),
        file="taxpayer,name\n<TIN>,ERP\n",
    ),
    "issue credentials with the scope": Row(
        "give",
        ("issue_credentials", {"taxpayer": "<TIN>", **NEW_ERP, **WHY, "scopes": ["<SCOPE>"]}),
        ("POST", "//system-users", {"taxpayer": "<TIN>", **NEW_ERP, **WHY, "scopes": ["<SCOPE>"]}),
        ("issue_credentials", "<TIN>", "--name", "ERP", "--scope", "<SCOPE>"),
    ),
    "import system users with the scope": Row(
        "never",  # not even by operators: a file is no place for it
        ("import_system_users", {}),
        (
            *("POST", "//imports/system-users"),
            {"rows": [{"taxpayer": "<TIN>", "name": "ERP", "scopes": ["<SCOPE>"]}]},
        ),
        ("import_registry", "<FILE>", "--kind", "system_users"),
        file="taxpayer,name,scopes\n<TIN>,ERP,<SCOPE>\n",
    ),
    "give the scope to a client": Row(
        "give",
        ("change_system_user", {**NEW_ERP, "scopes": ["<SCOPE>"], **WHY}),
        ("PATCH", "", {"scopes": ["<SCOPE>"], **WHY}),
        (*CHANGE_COMMAND, "--scope", "<SCOPE>"),
    ),
    "change_system_user": Row(
        "issue",
        ("change_system_user", {**NEW_ERP, **WHY}),
        ("PATCH", "", {"logins_per_minute": 7, **WHY}),
        (*CHANGE_COMMAND, "--logins-per-minute", "7"),
    ),
    "limit_system_user": Row(
        "issue",
        ("limit_system_user", {"permissions": [SUBMIT], **WHY}),
        (*("POST", "/limits"), {"allowed_permissions": [SUBMIT], "allowed_taxpayers": [], **WHY}),
        (*CHANGE_COMMAND, "--only-permission", SUBMIT),
    ),
    "extend_system_user": Row(
        "issue",
        ("extend_system_user", {"expires": LATER, **WHY}),
        ("POST", "/extend", {"expires_at": LATER, **WHY}),
        (*CHANGE_COMMAND, "--expires", LATER),
        ENDS,
    ),
    "let it never end": Row(
        "issue",
        ("extend_system_user", {"expires": "", **WHY}),
        ("POST", "/extend", {"expires_at": None, **WHY}),
        (*CHANGE_COMMAND, "--expires", "never"),
        ENDS,
    ),
    "use_private_key": Row(
        "issue",
        ("use_private_key", {"keys": KEY, **WHY}),
        ("POST", "/use-private-key", {"keys": KEY, **WHY}),
        (*CHANGE_COMMAND, "--auth-method", "private_key_jwt", "--jwks", "<KEY_FILE>"),
    ),
    "use_certificate": Row(
        "issue",
        ("use_certificate", PEM | WHY),
        ("POST", "/use-certificate", PEM | WHY),
        (*CHANGE_COMMAND, "--auth-method", "tls_client_auth", "--certificate", "<CERTIFICATE>"),
    ),
    "use_client_secret": Row(
        "issue",
        ("use_client_secret", WHY),
        ("POST", "/use-client-secret", WHY),
        (*CHANGE_COMMAND, "--auth-method", "client_secret"),
        KEY_CLIENT,
    ),
    "bind_tokens": Row(
        "issue",
        ("bind_tokens", {"token_binding": "dpop", **WHY}),
        ("POST", "/bind-tokens", {"token_binding": "dpop", **WHY}),
        (*CHANGE_COMMAND, "--token-binding", "dpop"),
    ),
    "rotate_secret": Row(
        "issue",
        ("rotate_secret", WHY),
        ("POST", "/rotate-secret", WHY),
        ("rotate_secret", "<CLIENT>"),
    ),
    "register_client_key": Row(
        "issue",
        ("register_client_key", {"keys": KEY} | WHY),
        ("POST", "/register-key", {"keys": KEY} | WHY),
        ("register_client_key", "<CLIENT>", "<KEY_FILE>"),
        KEY_CLIENT,
    ),
    "register_client_certificate": Row(
        "issue",
        ("register_client_certificate", PEM | WHY),
        ("POST", "/register-certificate", PEM | WHY),
        ("register_client_certificate", "<CLIENT>", "--certificate", "<CERTIFICATE>"),
        CERTIFICATE_CLIENT,
    ),
    "change_secret": Row(
        "issue",
        ("change_secret", {"secret": "<SECRET>", "networks": "192.0.2.0/24", **WHY}),
        ("POST", f"{CREDENTIAL}/networks", {"allowed_networks": ["192.0.2.0/24"], **WHY}),
        ("change_secret", "<CLIENT>", "<HINT>", "--from-network", "192.0.2.0/24"),
    ),
    "end_system_user_earlier": Row(
        "stop",
        ("end_system_user_earlier", {"expires": EARLIER, **WHY}),
        ("POST", "/end-earlier", {"expires_at": EARLIER, **WHY}),
        (*CHANGE_COMMAND, "--expires", EARLIER),
        ENDS,
    ),
    "retire_secret": Row(
        "stop",
        ("retire_secret", {"secret": "<SECRET>", "last_day": EARLIER, **WHY}),
        ("POST", f"{CREDENTIAL}/retire", {"expires_at": EARLIER, **WHY}),
        ("retire_secret", "<CLIENT>", "<HINT>", "--until", EARLIER),
    ),
    "revoke_secret": Row(
        "stop",
        ("revoke_secret", {"secret": "<SECRET>", **WHY}),
        ("POST", f"{CREDENTIAL}/revoke", WHY),
        ("revoke_secret", "<CLIENT>", "<HINT>"),
    ),
}
# --- From the records: where each kind is, and what a page that is not its own is sent ------------

MODULES = (taxpayers, intermediaries, granted_permissions, system_users)
RECORDS = {
    record.name: record
    for module in (*MODULES, registration, accounts, sign_in)
    for record in vars(module).values()
    if isinstance(record, ByReason)
}
PLACES: Mapping[str, tuple[type[Model], str, str]] = {
    "taxpayer": (Taxpayer, "//taxpayers/<TIN>", "<TIN>"),
    "intermediary": (Intermediary, "//intermediaries/<AGENT>", "<AGENT>"),
    "permission": (GrantedPermission, PERMISSION, "<PERMISSION>"),
    "system_user": (SystemUser, "", "<CLIENT>"),
    "protected_api": (ProtectedApi, "", "<API>"),
    "account": (StaffAccount, "", "<ACCOUNT>"),
}
NAMES = {model: name for model, _path, name in PLACES.values()}
DUTIES = {
    Duty.REGISTER: "register",
    Duty.GRANT: "grant",
    Duty.ISSUE: "issue",
    Duty.STOP: "block",
    Duty.ACCOUNTS: "accounts",
}


BEFORE: dict[str, Any] = {
    "unblock": {"blocked_at": timezone.now()},
    "activate": {"is_active": False},
}


def row_of(record: ByReason) -> Row:
    model, path, named = PLACES[record.row]
    verb = record.name.partition("_")[0]
    command = {"revoke_permission": "revoke_one_permission"}.get(record.name, record.name)
    has_rest = record.row not in ("protected_api", "account")
    assert record.duty is not None
    return Row(
        DUTIES[record.duty],
        (record.name, WHY),
        ("POST", f"{path}/{verb}", WHY) if has_rest else None,
        (command, named, "--reason", "a test"),
        BEFORE.get(verb, {}),
        model,
        record=record,
    )


ROWS |= {name: row_of(record) for name, record in RECORDS.items()}
# What each caller may do with clients of ERP systems; `:read` means RegistryAPI:read.
NONE = frozenset[str]()
CALLERS: dict[str, frozenset[str]] = {
    "viewer": NONE,
    "registrar": frozenset({"register", "grant", "block"}),
    "security officer": frozenset({"issue", "stop", "block"}),
    "auditor": NONE,
    "account manager": frozenset({"accounts"}),
    ":taxpayers": frozenset({"register"}),
    ":permissions": frozenset({"grant"}),
    ":credentials": frozenset({"issue", "stop", "block"}),
    ":webhooks": NONE,
    ":read": NONE,
    "RegistryAPI": frozenset({"register", "grant", "issue", "stop", "block"}),
    "an operator": frozenset({"register", "grant", "issue", "give", "stop", "block", "accounts"}),
}
STOPPING = frozenset({"stop", "block"})


def may(caller: str, duty: str, target: str) -> bool:
    """Of a client of the management API staff may only stop it, and another client nothing."""
    if caller == "an operator" or target == "ERP":
        return duty in CALLERS[caller]
    return caller in ROLES and duty in CALLERS[caller] & STOPPING


def test_no_row_holds_both_duties_or_can_acquire_the_other() -> None:
    """Of the table, which the tests below compare with the service."""
    assert CALLERS.keys() == {
        *ROLES,
        *(scope.removeprefix("RegistryAPI") or scope for scope in MANAGEMENT_SCOPES),
        "an operator",
    }
    both = {
        c for c, duties in CALLERS.items() if "issue" in duties and duties & {"register", "grant"}
    }
    assert both == {"RegistryAPI", "an operator"}  # only an operator gives that scope
    for caller in CALLERS.keys() - {"an operator"}:
        assert not any(may(caller, duty, "management API") for duty in ("issue", "give"))
        assert "give" not in CALLERS[caller]


def test_every_page_and_address_of_a_system_user_is_in_the_table() -> None:
    pages = {op.page[0] for op in ROWS.values() if op.page and op.of is SystemUser}
    assert pages == set(TASKS["taxpayers_systemuser"])
    prefix = "api/v1/management/system-users/<str:client_id>"
    paths = {str(pattern.pattern) for pattern in records if "POST" in methods_of(pattern)}
    tasks = {path.removeprefix(prefix) for path in paths if path.startswith(prefix)}
    own = {op.rest[1].replace("<SECRET>", "<int:credential>") for op in ROWS.values() if op.rest}
    assert tasks == {path for path in own if path.startswith("/") and not path.startswith("//")}


def methods_of(pattern: Any) -> set[str]:
    return {name.upper() for name in pattern.callback.view_initkwargs.get("http_method_names", ())}


@pytest.fixture(autouse=True)
def settings_of_all(settings: Settings) -> None:
    settings.SCOPES = SCOPES
    settings.MTLS_URL = "https://mtls.id.example.org"


def attempts(caller: str, tmp_path: Path) -> Iterator[tuple[str, str, bool]]:
    """Each operation that this caller has a door for, its target, and whether it was done."""
    door: Any = (
        partial(by_command, tmp_path)
        if caller == "an operator"
        else on_page(staff_client(caller))
        if caller in ROLES
        else by_rest(new_portal(caller if caller == "RegistryAPI" else f"RegistryAPI{caller}"))
    )
    for name, operation in ROWS.items():
        for target, scopes in (("ERP", "InvoicingAPI"), ("management API", "RegistryAPI:read")):
            if target == "ERP" or operation.is_about_a_client:
                values = new_values(operation, scopes)
                before = Change.objects.count()
                if door(operation, values):
                    yield name, target, Change.objects.count() > before


def new_values(operation: Row, scopes: str) -> dict[str, Any]:
    agent = make.intermediary().taxpayer
    state = operation.state if operation.of is SystemUser else {}
    user = make.system_user(taxpayer=agent, scopes=scopes, **state)
    secret: Any = make.credential(system_user=user)
    if "<SCOPE>" in str(operation) and scopes == "InvoicingAPI":
        user.credentials.update(revoked_at=timezone.now(), slot=None)
    values = {
        "<CLIENT>": user.client_id,
        "<HINT>": secret.hint,
        "<SECRET>": str(secret.pk),
        "<SCOPE>": "RegistryAPI:taxpayers",
        "<TIN>": make.taxpayer().tin,
        "<AGENT>": agent.tin,
        "<NEW>": TaxpayerFactory.build().tin,
        **dict.fromkeys(("<PERMISSION>", "<API>", "<ACCOUNT>"), ""),
        "<PK>": str(user.pk),
    }
    if operation.of is PermissionRequest:
        about = {"intermediary": agent.intermediary, **operation.state}
        asked: Any = make.permission_request(tin=values["<TIN>"], **about)
        values |= dict.fromkeys(("<PK>", "<REQUEST>"), str(asked.pk))
    if operation.record and operation.of is not SystemUser:
        row: Any = MADE[operation.of](agent)
        operation.of._default_manager.filter(pk=row.pk).update(**operation.state)
        name = NAMES[operation.of]
        found = {"<TIN>": "tin", "<API>": "client_id", "<ACCOUNT>": "username"}.get(name, "pk")
        values["<PK>"] = str(row.pk)
        values |= {name: str(getattr(row, found))} if name != "<AGENT>" else {}
    return values


MADE: Mapping[type[Model], Callable[[Taxpayer], Model]] = {
    Taxpayer: lambda _agent: make.taxpayer(),
    Intermediary: lambda agent: agent.intermediary,
    GrantedPermission: lambda agent: make.permission(intermediary=agent.intermediary),
    ProtectedApi: lambda _agent: make.protected_api(),
    StaffAccount: lambda _agent: with_totp(new_staff("viewer", f"viewer{User.objects.count()}")),
}


def filled(given: Any, values: Mapping[str, str]) -> Any:
    match given:
        case str():
            for name, value in values.items():
                given = given.replace(name, value)
            return given
        case Mapping():
            return {name: filled(value, values) for name, value in given.items()}
        case list() | tuple():
            return [filled(value, values) for value in given]
        case _:
            return given


def on_page(client: Client) -> Any:
    def attempt(operation: Row, values: Mapping[str, Any]) -> bool:
        if operation.page is None:
            return False
        task, data = operation.page
        row: Any = operation.of
        is_about_one = row is SystemUser and task not in WITHOUT_RECORD
        if operation.record or row is PermissionRequest or is_about_one:
            row = row._default_manager.get(pk=values["<PK>"])
        url = task_url(row, task)
        if operation.file:
            content = filled(operation.file, values).encode()
            sent = client.post(url, {"file": SimpleUploadedFile("x.csv", content)}, follow=True)
            if sent.redirect_chain:
                client.post(sent.redirect_chain[-1][0])
            return True
        if "<SECRET>" in data.values():
            url += f"?secret={values['<SECRET>']}"
        page: Any = client.get(url)
        hidden = hidden_of(page) if page.status_code == 200 else {}
        client.post(
            url, {**{k: v for k, v in hidden.items() if v is not None}, **filled(data, values)}
        )
        return True

    return attempt


def by_rest(portal: Portal) -> Any:
    def attempt(operation: Row, values: Mapping[str, Any]) -> bool:
        if operation.rest is None:
            return False
        method, path, body = operation.rest
        path = path[1:] if path.startswith("//") else f"/system-users/{values['<CLIENT>']}{path}"
        answer = portal.call(method, filled(path, values), filled(body, values), If_Match="*")
        assert answer.status_code in (200, 201, 403, 422), (path, answer.content)
        return True

    return attempt


def by_command(tmp_path: Path, operation: Row, values: Mapping[str, Any]) -> bool:
    if not operation.command:
        return False
    file, keys, pem = (tmp_path / name for name in ("rows.csv", "keys.json", "erp.pem"))
    file.write_text(filled(operation.file, values), encoding="utf-8")
    keys.write_text(KEY, encoding="utf-8")
    pem.write_text(PEM["certificate"], encoding="utf-8")
    files = {"<FILE>": str(file), "<KEY_FILE>": str(keys), "<CERTIFICATE>": str(pem)}
    run(*filled(operation.command, {**values, **files}))
    return True


@pytest.mark.parametrize("caller", CALLERS)
def test_each_caller_succeeds_at_what_the_table_says_and_at_nothing_else(
    caller: str, tmp_path: Path
) -> None:
    wrong = [
        (name, target, done)
        for name, target, done in attempts(caller, tmp_path)
        if done != may(caller, ROWS[name].duty, target)
    ]
    assert not wrong


@pytest.mark.parametrize("name", RECORDS)
def test_every_door_does_what_the_record_says(name: str, tmp_path: Path) -> None:
    """Once and with the reason; done again nothing changes, and the page says why."""
    row, record = ROWS[name], RECORDS[name]
    role = next(r for r in ROLES if may(r, row.duty, "ERP"))
    client, portal = staff_client(role), new_portal("RegistryAPI")
    doors = {
        "page": on_page(client),
        "REST": by_rest(portal),
        "command": partial(by_command, tmp_path),
    }
    values: dict[str, Any] = {}
    for door, attempt in doors.items():
        values = new_values(row, "InvoicingAPI")
        without = replace(
            row,
            page=row.page and (row.page[0], {**row.page[1], "reason": " "}),
            rest=row.rest and (*row.rest[:2], {"reason": " "}),
            command=(*row.command[:-1], " "),
        )
        before = Change.objects.count()
        attempt(without, values)
        assert Change.objects.count() == before, f"{door}: without a reason"
        if not attempt(row, values):
            assert door == "REST"
            continue
        change = Change.objects.latest("pk")
        assert (change.action, change.reason) == (record.action.name, "a test"), door
        attempt(row, values)
        assert Change.objects.count() == before + 1, f"{door}: again"
    code, out, err = run(*filled(row.command, values), "--json")
    assert (code, err) == (0, "")
    assert row.page
    changed: Any = row.of._default_manager.get(pk=values["<PK>"])
    assert record.unneeded(changed)
    shown = json.loads(out).get("is_active")
    assert shown is None or shown is changed.is_active
    if row.page[0] == name:
        assert record.unneeded(changed) in text_of(client.get(task_url(changed, name), follow=True))


def test_operators_must_give_a_reason_where_the_contract_says_so() -> None:
    values = new_values(ROWS["block_system_user"], "InvoicingAPI")
    for name, record in RECORDS.items():
        code, _out, err = run(*filled(ROWS[name].command[:-2], values))
        assert ("required: --reason" in err) is (record.reason is Reason.ALWAYS), (name, code)
    assert {n for n, r in RECORDS.items() if r.reason is Reason.ALWAYS} == {
        *("block_system_user", "unblock_system_user")
    }


@pytest.mark.parametrize("role", ["security officer", None])
def test_pages_say_it_before_a_form_is_filled_in(role: str | None) -> None:
    client, says = staff_client(role), "so only the operators of this service change"
    for name, operation in ROWS.items():
        if operation.duty != "issue" or not operation.is_about_a_client or not operation.page:
            continue
        values = new_values(operation, "RegistryAPI:credentials")
        user = SystemUser.objects.get(client_id=values["<CLIENT>"])
        url = task_url(user, operation.page[0])
        answer = client.get(url, follow=True)
        assert answer.redirect_chain, name
        assert text_of(answer).count(says) == 2, name  # why the form is not there, and on the page
        page = answer.content.decode()
        assert url not in page, name
        stops = ["end_system_user_earlier", "retire_secret", "revoke_secret"]
        stops += [] if user.blocked_at else ["block_system_user"]
        assert all(task_url(user, task) in page for task in stops), name
    issuing = text_of(client.get(task_url(SystemUser, "issue_credentials")))
    assert "InvoicingAPI" in issuing
    assert "RegistryAPI" not in issuing


def test_of_several_records_those_of_the_management_api_are_left_out() -> None:
    rows = [
        make.system_user(scopes=scopes, **ENDS) for scopes in ("InvoicingAPI", "RegistryAPI:read")
    ]
    form = {"action": "bulk_extend_system_user", "_selected_action": [row.pk for row in rows]}
    page: Any = staff_client("security officer").post(list_url(SystemUser), form)
    refusals = {row.pk: str(preview.refusal) for row, preview in page.context["plan"]}
    assert refusals[rows[0].pk] == ""
    assert "only the operators of this service" in refusals[rows[1].pk]
