"""What a command refuses: one line on stderr, and nothing has changed (contract 6)."""

import re
import shlex
from typing import Any

import pytest

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
)
from tests.support.command_line import error_of
from tests.support.factories import (
    CredentialFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

TIN, ROB, AGENT, KNOWN = "C1234567890", "201901234567", "C9876543210", "C0000000001"
WHOLE = f"{TIN}:{ROB}"
CLIENT, UNKNOWN = new_client_id("test"), "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
PAIR = f"--taxpayer {WHOLE} --intermediary {AGENT}"
CHANGE = f"change_system_user {CLIENT}"
OF_AGENT, SECRET = new_client_id("test"), new_client_secret("test")
LIMIT, NETWORKS = f"change_system_user {OF_AGENT} --only-", f"change_secret {CLIENT} {SECRET[-4:]}"
MANY = " ".join(f"C{number:09d}" for number in range(1, 501))
ADDRESSES = " ".join(f"192.0.2.{number}" for number in range(21))
TABLES = (Taxpayer, Intermediary, GrantedPermission, SystemUser, Credential, Change)
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
    TaxpayerFactory.create(tin=KNOWN, name="Known")
    whole = TaxpayerFactory.create(tin=TIN, rob=ROB)
    agent = IntermediaryFactory.create(taxpayer__tin=AGENT).taxpayer
    SystemUserFactory.create(client_id=OF_AGENT, taxpayer=agent)
    user = {"client_id": CLIENT, "taxpayer": whole, "name": "ERP"}
    user = {f"system_user__{name}": value for name, value in user.items()}
    CredentialFactory.create(**user, clear=SECRET)


def stored() -> list[Any]:
    rows: list[Any] = []
    for model in TABLES:
        rows += model._default_manager.order_by("pk").values()
    return rows


def without_chance(text: str) -> str:
    """The name of a case is the same in each process of a run."""
    return re.sub(rf"c[is]_\w+|(?<= ){SECRET[-4:]}", "ID", text)[:60]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(("line", "says"), cases(), ids=without_chance)
def test_a_command_refuses_in_one_line_and_nothing_has_changed(line: str, says: str) -> None:
    before = stored()
    assert says in error_of(*shlex.split(line))
    assert stored() == before


def test_a_secret_given_in_place_of_the_client_id_is_not_repeated() -> None:
    clear = new_client_secret("test")
    line = error_of("block_system_user", clear, "--reason", "leaked")
    assert line.startswith("This is a client secret. Give the client ID (ci_…)")
    assert clear not in line
