"""The commands that limit credentials: for whom, with what, and from where."""

import pytest

from taxpayers.models import Change, Credential, SystemUser
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import Erp, claims_of, new_erp
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db

ONE, OTHER = "C1234567890:ROB-12345", "C2000000002"
WHY = ("--reason", "one branch")


@pytest.fixture
def represented() -> None:
    TaxpayerFactory.create(tin="C1234567890", rob="ROB-12345")
    TaxpayerFactory.create(tin=OTHER)


def limit_of(erp: Erp) -> tuple[str, str]:
    row = SystemUser.objects.get(pk=erp.system_user.pk)
    return row.allowed_permissions, row.allowed_taxpayers


@pytest.mark.usefixtures("represented")
def test_change_system_user_limits_what_is_given_and_leaves_the_rest(intermediary: Erp) -> None:
    def change(*options: str) -> tuple[str, str]:
        output_of("change_system_user", intermediary.client_id, *options, *WHY)
        return limit_of(intermediary)

    assert change("--only-permission", VIEW, SUBMIT) == (f"{SUBMIT} {VIEW}", "")
    assert change("--only-taxpayer", ONE, OTHER) == (f"{SUBMIT} {VIEW}", f"{ONE} {OTHER}")
    assert change("--only-permission", VIEW) == (VIEW, f"{ONE} {OTHER}")
    assert change("--not-limited", "--only-taxpayer", OTHER) == ("", OTHER)
    assert change("--not-limited") == ("", "")
    assert set(Change.objects.values_list("action", "reason")) == {
        ("limit_system_user", "one branch")
    }
    assert Change.objects.count() == 5
    change("--not-limited")
    assert Change.objects.count() == 5, "safe to repeat"
    both = ("--only-permission", VIEW, "--only-taxpayer", ONE)
    assert output_of("change_system_user", intermediary.client_id, *both).endswith(
        f" On behalf of others it gets at most {VIEW}. It may act for {ONE} only."
        " It gets no token for its own taxpayer.\n"
    )
    answer = json_output_of("change_system_user", intermediary.client_id, *both)
    assert (answer["allowed_permissions"], answer["allowed_taxpayers"]) == ([VIEW], [ONE])


def test_a_wrong_limit_is_refused_in_one_line(intermediary: Erp) -> None:
    plain, many = new_erp(), [f"C{number:09d}" for number in range(501)]
    for client, options, line in (
        (intermediary, ("--only-permission", "documents:shred"), "no permission code documents:s"),
        (intermediary, ("--only-permission",), "--only-permission: expected at least one argument"),
        (intermediary, ("--only-taxpayer", "C9999999999"), "There is no taxpayer C9999999999."),
        (intermediary, ("--only-taxpayer", "?"), "'?' is not a taxpayer identifier"),
        (intermediary, ("--only-taxpayer", intermediary.tin), f"Leave {intermediary.tin} out: it"),
        (intermediary, ("--only-taxpayer", *many), "Give 500 taxpayers at most, not 501."),
        (intermediary, ("--only-taxpayer", *many[1:]), "There is no taxpayer C000000001, C000"),
        (plain, ("--only-permission", VIEW), "is not an intermediary, so its system users cannot"),
    ):
        assert line in error_of("change_system_user", client.client_id, *options)
        assert limit_of(client) == ("", "")


def test_issue_credentials_begins_with_the_limits() -> None:
    role = IntermediaryFactory.create(taxpayer__tin="C9876543210")
    represented = GrantedPermissionFactory.create(intermediary=role).taxpayer
    answer = json_output_of(
        *("issue_credentials", "C9876543210", "--name", "Branch"),
        *("--only-permission", VIEW, "--only-taxpayer", str(represented.identifier)),
        *("--from-network", "127.0.0.0/8", "192.0.2.7"),
    )
    assert answer["allowed_permissions"] == [VIEW]
    assert answer["allowed_taxpayers"] == [str(represented.identifier)]
    assert answer["allowed_networks"] == ["127.0.0.0/8", "192.0.2.7/32"]
    user = SystemUser.objects.get(client_id=answer["client_id"])
    erp = Erp(user.client_id, answer["client_secret"], user)
    claims = claims_of(erp.login(on_behalf_of=str(represented.identifier)))
    assert claims["permissions"] == [VIEW]
    assert erp.login().status_code == 400
    stored = Change.objects.get(action="issue_credentials").after
    assert {name: stored[name] for name in stored if name.startswith("allowed_")} == {
        "allowed_permissions": VIEW,
        "allowed_taxpayers": str(represented.identifier),
        "allowed_networks": "127.0.0.0/8 192.0.2.7/32",
    }


def test_change_secret_sets_and_removes_the_networks(erp: Erp) -> None:
    hint = erp.client_secret[-4:]

    def change(*options: str) -> str:
        return output_of("change_secret", erp.client_id, hint, *options, *WHY)

    assert change("--from-network", "192.0.2.0/24", "2001:DB8::/32") == (
        f"…{hint} of {erp.client_id} may be used from 192.0.2.0/24, 2001:db8::/32 only.\n"
    )
    assert erp.login().status_code == 400
    answer = json_output_of(
        "change_secret", erp.client_id, hint, "--from-network", "127.0.0.1", *WHY
    )
    assert answer == {
        "client_id": erp.client_id,
        "secret_hint": hint,
        "allowed_networks": ["127.0.0.1/32"],
    }
    assert erp.login().status_code == 200
    assert change("--from-anywhere").endswith(" may be used from anywhere.\n")
    change("--from-anywhere")
    assert Change.objects.count() == 3, "safe to repeat"
    output_of("revoke_secret", erp.client_id, hint)
    assert "has already ended" in error_of("change_secret", erp.client_id, hint, "--from-anywhere")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "one of the arguments --from-network --from-anywhere is required"),
        (("--from-network", "192.0.2.7/24"), "Write 192.0.2.0/24."),
        (("--from-network", "0.0.0.0/0"), "0.0.0.0/0 is every address."),
        (("--from-network", "example.org"), "example.org is not a network. Write an address and"),
        (("--from-network", *(f"192.0.2.{n}" for n in range(21))), "Give 20 networks at most"),
        (("--from-network", "192.0.2.7", "--from-anywhere"), "not allowed with argument"),
        (("--from-anywhere", "--reason", " "), "Give a reason: it is missing or blank."),
    ],
)
def test_wrong_networks_are_refused_in_one_line(
    erp: Erp, options: tuple[str, ...], line: str
) -> None:
    assert line in error_of("change_secret", erp.client_id, erp.client_secret[-4:], *options)
    assert Credential.objects.get().allowed_networks == ""
