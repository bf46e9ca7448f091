"""Commands of operators: keys, accounts, records, and what each refuses (contract 6)."""

import csv
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from identity.api.management.record_commands import LISTINGS
from identity.webhooks.models import WebhookEndpoint
from taxpayers.credentials import hash_secret, new_client_id, new_client_secret
from taxpayers.models import Change, Credential, PermissionCode
from tests.registry.test_services_history import registry
from tests.servers.processes import CHECKOUT
from tests.support import make
from tests.support.accounts import new_staff
from tests.support.command_line import error_of, json_output_of, output_of, run

pytestmark = pytest.mark.django_db
NOW = timezone.now()
IN_A_MONTH, IN_A_YEAR = NOW + timedelta(days=30), NOW + timedelta(days=365)
DAY = str((NOW + timedelta(days=90)).date())
DAY_IN_TEXT = datetime.fromisoformat(f"{DAY}T15:59:59.999999").replace(tzinfo=UTC)
WHY = ("--reason", "asked by letter")


def permission(end: datetime | None) -> tuple[Any, str]:
    row = make.permission(valid_from=NOW - timedelta(days=9), valid_until=end)
    return row, str(row.pk)


def intermediary(end: datetime | None) -> tuple[Any, str]:
    row = make.intermediary(active_until=end)
    return row, str(row.taxpayer.identifier)


def webhook() -> tuple[Any, str]:
    row = WebhookEndpoint.objects.create(url="https://a.example.org/", secret="x", created_at=NOW)
    return row, str(row.pk)


def account() -> tuple[Any, str]:
    row = new_staff("viewer")
    return row, row.username


Made = Callable[[], tuple[Any, str]]
DONE: dict[str, tuple[Made, tuple[str, ...], dict[str, Any]]] = {
    "extend_intermediary": (
        *(lambda: intermediary(IN_A_MONTH), ("--until", "never")),
        {"active_until": None},
    ),
    "end_intermediary_earlier": (
        *(lambda: intermediary(None), ("--until", DAY)),
        {"active_until": DAY_IN_TEXT},
    ),
    "rename_account": (account, ("--name", "Aminah binti Ali"), {"name": "Aminah binti Ali"}),
    "change_role": (account, ("--role", "registrar"), {"role": "registrar"}),
    "change_webhook": (
        *(webhook, ("--url", "https://b.example.org/")),
        {"url": "https://b.example.org/", "event_types": []},
    ),
}


@pytest.mark.parametrize("command", DONE)
def test_it_is_changed_and_in_the_history(command: str) -> None:
    make, arguments, expected = DONE[command]
    row, name = make()
    answered = json_output_of(command, name, *arguments, *WHY)
    assert answered.get("role") == expected.get("role")
    fresh = type(row).objects.get(pk=row.pk)
    assert {field: getattr(fresh, field) for field in expected} == expected
    assert Change.objects.latest("pk").reason == "asked by letter"


def test_the_end_of_a_permission_is_said() -> None:
    row, name = permission(IN_A_MONTH)
    line = output_of("extend_permission", name, "--until", "never")
    assert line == f"The permission {row} is valid with no end date.\n"
    assert "is not later" in error_of("extend_permission", permission(IN_A_YEAR)[1], "--until", DAY)


def test_a_permission_code_is_added_and_changed() -> None:
    for text in ("Archive documents", "Archive them"):
        output_of("set_permission_code", "documents:archive", "--description", text)
        assert PermissionCode.objects.get(pk="documents:archive").description == text


def test_what_a_leak_has_touched_ends_at_once(tmp_path: Path) -> None:
    """Of those in a file, and of all; nothing before --yes, and only what is older."""
    old, new, other = (make.credential(created_at=NOW - timedelta(days=days)) for days in (9, 1, 9))
    file = tmp_path / "leaked.txt"
    file.write_text("".join(f"{row.system_user.client_id}\n" for row in (old, new)))
    arguments = ("revoke_secrets", "--before", str((NOW - timedelta(days=5)).date()), *WHY)
    assert "would revoke 1 " in error_of(*arguments, "--file", str(file))
    assert not Credential.objects.exclude(revoked_at=None)
    assert json_output_of(*arguments, "--file", str(file), "--yes") == {"revoked": 1}
    assert list(Credential.objects.exclude(revoked_at=None)) == [old]
    assert json_output_of("revoke_secrets", "--all", "--yes") == {"revoked": 2}
    assert not Credential.objects.filter(revoked_at=None, pk__in=(new.pk, other.pk))


def test_an_unknown_client_in_a_file_stops_it_before_anything_is_revoked(tmp_path: Path) -> None:
    known = make.credential().system_user.client_id
    file = tmp_path / "leaked.txt"
    file.write_text(f"{known}\nnobody\n")
    assert "not a client ID" in error_of("revoke_secrets", "--file", str(file), "--yes")
    assert not Credential.objects.exclude(revoked_at=None)
    assert run("revoke_secrets", "--all", known, "--yes")[0] == 2


def test_many_new_secrets_are_in_a_file_that_only_its_recipient_can_read(tmp_path: Path) -> None:
    owners = [make.credential().system_user for _ in range(2)]
    key, certificate, output = (tmp_path / name for name in ("key", "certificate", "output"))
    openssl("req", "-x509", "-nodes", "-subj=/CN=a", f"-keyout={key}", f"-out={certificate}")
    arguments = ("rotate_secrets", *(owner.client_id for owner in owners), "--to", str(certificate))
    assert json_output_of(*arguments, "--output", str(output)) == {"issued": 2}
    secrets = openssl("cms", "-decrypt", "-inform=PEM", f"-in={output}", f"-inkey={key}")
    rows = list(csv.DictReader(secrets.splitlines()))
    assert [row["client_id"] for row in rows] == [owner.client_id for owner in owners]
    lookups = {hash_secret(row["client_secret"]) for row in rows}
    assert Credential.objects.filter(lookup__in=lookups).count() == len(owners)
    assert rows[0]["client_secret"] not in output.read_text()
    other = make.credential().system_user.client_id
    before = Credential.objects.count()
    arguments = ("rotate_secrets", other, "--to", str(certificate), "--output", str(output))
    assert "exists already" in error_of(*arguments)
    assert Credential.objects.count() == before  # nothing was issued


def openssl(*arguments: str) -> str:
    command = ["openssl", *(part for one in arguments for part in one.partition("=")[::2] if part)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_readme_names_each_kind_of_record_that_is_listed() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    kinds = readme.partition("`show KIND NAME` | ")[2].partition(":")[0]
    assert sorted(kinds.replace(" ", "_").split(",_")) == sorted(LISTINGS)


def test_a_list_has_the_records_of_its_filters_in_stable_columns() -> None:
    rows = [make.permission() for _ in range(3)]
    tin = str(rows[1].taxpayer.identifier)
    names, only = output_of("list", "permissions", f"--taxpayer={tin}").splitlines()
    assert names.split("\t")[:5] == ["id", "taxpayer", "intermediary", "permissions", "state"]
    assert only.split("\t")[:2] == [str(rows[1].pk), tin]
    listed = json_output_of("list", "permissions", "--limit", "2")["permissions"]
    assert [one["id"] for one in listed] == [rows[0].pk, rows[1].pk]
    assert json_output_of("list", "permissions", "--limit=0")["permissions"][2]["id"] == rows[2].pk
    assert json_output_of("list", "logins") == {"logins": []}


def test_credentials_are_those_of_a_system_user_without_their_secrets() -> None:
    secret = make.credential()
    client = secret.system_user.client_id
    [shown] = json_output_of("list", "credentials", "--client-id", client)["credentials"]
    assert (shown["hint"], shown["state"]) == (secret.hint, "live")
    whole = json_output_of("show", "system_user", client)
    assert (whole["client_id"], whole["credentials"][0]["hint"]) == (client, secret.hint)
    assert secret.lookup not in json.dumps([shown, whole])
    assert f"client_id: {client}\n" in output_of("show", "system_user", client)


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("list", "credentials"), 2, "client_id: This field is required."),
        (("list", "taxpayers", "--state=x"), 2, "state: Choose one of: active, inactive."),
        (("list", "taxpayers", "--outcome=x"), 2, "outcome: There is no such field here."),
        (("list", "logins", "--taxpayer=C1234567890", "--outcome=x"), 2, "outcome: Choose one of"),
        (("show", "taxpayer", "C1234567890"), 1, "There is no taxpayer C1234567890."),
    ],
)
def test_a_wrong_filter_is_named(arguments: tuple[str, ...], code: int, line: str) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith(line)


TIN, ROB, AGENT, KNOWN = "C1234567890", "201901234567", "C9876543210", "C0000000001"
WHOLE = f"{TIN}:{ROB}"
CLIENT, UNKNOWN = new_client_id("test"), "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
PAIR = f"--taxpayer {WHOLE} --intermediary {AGENT}"
CHANGE = f"change_system_user {CLIENT}"
OF_AGENT, SECRET = new_client_id("test"), new_client_secret("test")
LIMIT, NETWORKS = f"change_system_user {OF_AGENT} --only-", f"change_secret {CLIENT} {SECRET[-4:]}"
MANY = " ".join(f"C{number:09d}" for number in range(1, 501))
ADDRESSES = " ".join(f"192.0.2.{number}" for number in range(21))
NOT_A_TAXPAYER = "This is not a taxpayer identifier: "
# A command line, and what the line on stderr has.
CASES = f"""
register_taxpayer | the following arguments are required: TIN, --name
register_taxpayer {TIN} --name x --nam x | unrecognized arguments: --nam x
register_intermediary C0000000002 --rob R-123 | There is no taxpayer C0000000002:R-123. Check the
register_intermediary {KNOWN} --until 2020-01-01 | would end 2020-01-01 23:59+08:00, in the past
register_intermediary {KNOWN} --until soon | argument --until: 'soon' is not a date. Write 2027-12-
grant_permission --taxpayer X --intermediary {AGENT} --permission documents:view | \
argument --taxpayer: 'X' is not a taxpayer identifier: the TIN does not have the form
grant_permission --taxpayer {AGENT} --intermediary {WHOLE} --permission documents:view | \
{WHOLE} is not an intermediary. Register it as an intermediary first. Next: manage.py register_in
revoke_permission {PAIR} | {WHOLE} has never granted anything to {AGENT}.
issue_credentials {WHOLE} --name ERP | already has a system user named ERP: {CLIENT}. Issue a
set_first_password nobody | There is no staff account nobody.
reset_second_factor nobody | There is no staff account nobody.
{CHANGE} --reason x | Nothing to change: give --name, --logins-per-minute, --scope, --e
{CHANGE} --logins-per-minute many | argument --logins-per-minute: invalid int value: 'many'
{CHANGE} --expires '' | argument --expires: '' is not a date.
{CHANGE} --name x --reason ' ' | Give a reason: it is missing or blank.
revoke_secret {CLIENT} zzzz | {CLIENT} has no secret with this ending. Its secrets:
{LIMIT}permission documents:shred | There is no permission code documents:shred
{LIMIT}permission | --only-permission: expected at least one argument
{LIMIT}taxpayer C9999999999 | There is no taxpayer C9999999999.
{LIMIT}taxpayer '?' | '?' is not a taxpayer identifier
{LIMIT}taxpayer {AGENT} | Leave {AGENT} out: it
{LIMIT}taxpayer {MANY} C000000000 | Give 500 taxpayers at most, not 501.
{LIMIT}taxpayer {MANY} | There is no taxpayer C000000001, C000
{CHANGE} --only-permission documents:view | is not an intermediary, so its system users cannot
{CHANGE} --only-on-behalf | is not an intermediary, so its system users cannot
issue_credentials {KNOWN} --name x --only-on-behalf | is not an intermediary, so its system users
{NETWORKS} | one of the arguments --from-network --from-anywhere is required
{NETWORKS} --from-network 192.0.2.7/24 | Write 192.0.2.0/24.
{NETWORKS} --from-network 0.0.0.0/0 | 0.0.0.0/0 is every address.
{NETWORKS} --from-network example.org | example.org is not a network. Write an address and
{NETWORKS} --from-network {ADDRESSES} | Give 20 networks at most
{NETWORKS} --from-network 192.0.2.7 --from-anywhere | not allowed with argument
{NETWORKS} --from-anywhere --reason ' ' | Give a reason: it is missing or blank.
"""
OF_TAXPAYERS = {
    "deactivate_taxpayer": "",
    "activate_taxpayer": "",
    "rename_taxpayer": " --name After",
}
WRONG_TAXPAYERS = {
    "": "the following arguments are required: TIN",
    TIN: f"There is no taxpayer {TIN}. Check the identifier, or register the taxpayer first.",
    "x": f"{NOT_A_TAXPAYER}the TIN does not have the form",
    f"{TIN}:": f"{NOT_A_TAXPAYER}there is no ROB number after the colon",
    f"{WHOLE} --rob {ROB}": f"{NOT_A_TAXPAYER}the TIN does not",
    f"{KNOWN} --reason ' '": "Give a reason: it is missing or blank.",
}
BY_CLIENT_ID = {
    "rotate_secret": "",
    "revoke_secret": " abcd",
    "block_system_user": " --reason leaked",
    "unblock_system_user": " --reason replaced",
    "change_system_user": " --name x",
}
NOT_AN_ID = "This is not a client ID of this service: it "
WRONG_CLIENT_IDS = {
    UNKNOWN: f"There is no system user {UNKNOWN}.",
    UNKNOWN[:-2]: f"{NOT_AN_ID}is cut off.",
    UNKNOWN[:-1] + "0": f"{NOT_AN_ID}is mistyped.",
    f"' {UNKNOWN}'": f"{NOT_AN_ID}has blanks around it.",
    "erp": f"{NOT_AN_ID}does not begin with ci_.",
    "'<client_id>'": f"{NOT_AN_ID}is a placeholder.",
    "pa_test_0tZ9IYGT3jkU4Y0n78mfDC2vpszh": f"{NOT_AN_ID}is of a protected API.",
    new_client_id("live"): f"{NOT_AN_ID}belongs to the other environment.",
}


def cases() -> list[tuple[str, str]]:
    found = [line.partition(" | ")[::2] for line in CASES.strip("\n").splitlines()]
    for command, more in OF_TAXPAYERS.items():
        found += [(f"{command} {given}{more}", says) for given, says in WRONG_TAXPAYERS.items()]
    for command, more in BY_CLIENT_ID.items():
        found += [(f"{command} {given}{more}", says) for given, says in WRONG_CLIENT_IDS.items()]
    return found


@pytest.fixture
def registered() -> None:
    make.taxpayer(tin=KNOWN, name="Known")
    whole = make.taxpayer(tin=TIN, rob=ROB)
    make.system_user(client_id=OF_AGENT, taxpayer=make.intermediary(taxpayer__tin=AGENT).taxpayer)
    user = make.system_user(client_id=CLIENT, taxpayer=whole, name="ERP")
    make.credential(system_user=user, clear=SECRET)


def without_chance(text: str) -> str:
    """The name of a case is the same in each process of a run."""
    return re.sub(rf"c[is]_\w+|(?<= ){SECRET[-4:]}", "ID", text)[:60]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("line", "says"), cases(), ids=without_chance)
def test_a_command_refuses_in_one_line_and_nothing_has_changed(line: str, says: str) -> None:
    before = registry()
    assert says in error_of(*shlex.split(line))
    assert registry() == before


def test_a_secret_given_in_place_of_the_client_id_is_not_repeated() -> None:
    clear = new_client_secret("test")
    line = error_of("block_system_user", clear, "--reason", "leaked")
    assert line.startswith("This is a client secret. Give the client ID (ci_…)")
    assert clear not in line
