"""The commands that limit credentials: for whom, with what, and from where."""

import pytest

from taxpayers.models import Credential, SystemUser
from tests.support.command_line import error_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import VIEW

pytestmark = pytest.mark.django_db

ONE, OTHER = "C1234567890:ROB-12345", "C2000000002"


def limit_of(erp: Erp) -> tuple[str, str]:
    row = SystemUser.objects.get(pk=erp.system_user.pk)
    return row.allowed_permissions, row.allowed_taxpayers


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
