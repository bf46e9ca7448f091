"""Clients of the management API: what is decided besides the table of duties."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from identity.api.checks import check_duties
from taxpayers import services
from taxpayers.models import SystemUser
from taxpayers.services import Author, AuthorKind, OnlyOperators, ServiceError
from tests.management_api.portal import SCOPES
from tests.support import make
from tests.support.command_line import json_output_of, output_of
from tests.support.moments import why

pytestmark = pytest.mark.django_db
OPERATOR = Author("root (manage.py)", kind=AuthorKind.OPERATOR)


@pytest.fixture(autouse=True)
def management_scopes(settings: Settings) -> None:
    settings.SCOPES = SCOPES


def test_a_client_revokes_its_own_secret_and_not_that_of_another_one() -> None:
    secret: Any = make.credential(system_user__scopes="RegistryAPI")
    with pytest.raises(OnlyOperators):
        services.revoke_credential(credential=secret, **why(Author.client("ci_test_other")))
    own = Author.client(secret.system_user.client_id)
    services.revoke_credential(credential=secret, **why(own))
    secret.refresh_from_db()
    assert secret.revoked_at is not None


@pytest.mark.parametrize("is_active", [False, True])
def test_a_client_neither_stops_nor_starts_another_one_by_its_taxpayer(is_active: bool) -> None:
    """Or a stolen token would undo what staff did against another one."""
    user: Any = make.system_user(
        scopes="InvoicingAPI RegistryAPI:credentials", taxpayer__is_active=not is_active
    )
    change: dict[str, Any] = {"taxpayer": user.taxpayer, "is_active": is_active}
    with pytest.raises(OnlyOperators):
        services.set_taxpayer_active(**change, **why(Author.client("ci_test_other")))
    assert services.set_taxpayer_active(**change, **why(Author("officer"))).is_active is is_active


@pytest.mark.parametrize("by", [Author("officer"), Author.client("ci_test_other")], ids=str)
def test_only_operators_give_the_scopes_of_the_management_api(by: Author) -> None:
    user, scopes = make.system_user(), ["RegistryAPI:read"]
    with pytest.raises(OnlyOperators):
        services.change_system_user(system_user=user, scopes=scopes, **why(by))
    with pytest.raises(OnlyOperators):
        services.register_system_user(taxpayer=user.taxpayer, name="P", scopes=scopes, **why(by))


def test_no_credentials_from_before_open_the_management_api() -> None:
    """Not even by an operator: others may have them."""
    secret: Any = make.credential()
    client: dict[str, Any] = {"system_user": secret.system_user}
    with pytest.raises(ServiceError, match="Revoke them first"):
        services.change_system_user(**client, scopes=["RegistryAPI:read"], **why(OPERATOR))
    services.revoke_credential(credential=secret, **why(OPERATOR))
    changed = services.change_system_user(**client, scopes=["RegistryAPI:read"], **why(OPERATOR))
    make.credential(system_user=changed)
    # From one scope of the management API to another: only operators have issued what it has.
    services.change_system_user(**client, scopes=["RegistryAPI"], **why(OPERATOR))


ISSUE = ("issue_credentials", "C1000000001", "--name", "Portal", "--scope")


@pytest.mark.parametrize(
    ("scopes", "says"),
    [
        (["RegistryAPI"], "TAKE CARE"),
        (["RegistryAPI:credentials", "RegistryAPI:permissions"], "TAKE CARE"),
        (["RegistryAPI:credentials"], "management API: issue credentials. Only"),
        (["RegistryAPI:taxpayers", "RegistryAPI:permissions"], "register taxpayers, grant perm"),
        (["RegistryAPI:read"], "management API: read. Only operators"),
    ],
)
def test_the_command_that_gives_a_scope_says_what_it_means(scopes: list[str], says: str) -> None:
    make.taxpayer(tin="C1000000001")
    note = json_output_of(*ISSUE, *scopes)["note"]
    assert says in note
    assert ("TAKE CARE" in note) == ("TAKE CARE" in says)
    client_id = SystemUser.objects.get().client_id
    assert note in output_of("change_system_user", client_id, "--scope", *scopes)


@pytest.mark.parametrize(
    ("fields", "is_named"),
    [
        ({"scopes": "RegistryAPI"}, True),
        ({"scopes": "RegistryAPI:credentials InvoicingAPI RegistryAPI:taxpayers"}, True),
        ({"scopes": "RegistryAPI:taxpayers RegistryAPI:permissions RegistryAPI:read"}, False),
        ({"scopes": "RegistryAPI:credentials RegistryAPI:webhooks"}, False),
        ({"scopes": "RegistryAPI", "blocked_at": timezone.now()}, False),
        ({"scopes": "RegistryAPI", "expires_at": timezone.now() - timedelta(days=1)}, False),
        ({"scopes": "RegistryAPI", "taxpayer__is_active": False}, False),
    ],
)
def test_a_check_names_clients_that_hold_both_duties(
    fields: dict[str, Any], is_named: bool
) -> None:
    user = make.system_user(**fields)
    found = check_duties(databases=["default"])
    assert [user.client_id in warning.msg for warning in found] == [True] * is_named
    assert check_duties() == []  # a command that must not look into a database
