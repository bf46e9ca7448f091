"""A token that has ended stays ended when what ended it is taken back (contract 2).

The table is (what ends and is taken back) x (who asks).
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import (
    Author,
    AuthorKind,
    block_system_user,
    grant_permission,
    issue_secret,
    revoke_credential,
    revoke_permission,
    set_intermediary_active,
    set_taxpayer_active,
    unblock_system_user,
)
from tests.introspection.api import new_api, token_of
from tests.management_api.portal import BASE, SCOPES
from tests.self_service.calls import PERMISSIONS, call
from tests.status_lists.reader import is_ended
from tests.support.answers import body_of
from tests.support.erp import Erp
from tests.support.factories import GrantedPermissionFactory
from tokens.status_lists.publication import forget_status_lists, status_lists

pytestmark = pytest.mark.django_db
# The clients may use the management API too.
OPERATOR = Author("root (manage.py)", kind=AuthorKind.OPERATOR)

DAY = timedelta(days=1)


def why() -> dict[str, Any]:
    return {"reason": "a test", "by": OPERATOR, "at": datetime.now(UTC)}


def represented() -> Taxpayer:
    return GrantedPermission.objects.earliest("pk").taxpayer


def switch_taxpayer(taxpayer: Taxpayer, *, is_active: bool) -> None:
    set_taxpayer_active(taxpayer=taxpayer, is_active=is_active, **why())


def switch_role(erp: Erp, *, is_active: bool) -> None:
    set_intermediary_active(intermediary=erp.role, is_active=is_active, until=None, **why())


def end_role(until: datetime | None) -> None:
    Intermediary.objects.update(active_until=until)


def expire(ends: datetime | None) -> None:
    SystemUser.objects.update(expires_at=ends)


def change_scopes(scopes: str) -> None:
    SystemUser.objects.update(scopes=scopes)


def revoke_all_secrets(erp: Erp) -> None:
    for secret in Credential.objects.filter(revoked_at=None):
        revoke_credential(credential=secret, **why())


def replace_secret(erp: Erp) -> None:
    issued = issue_secret(system_user=erp.system_user, by=OPERATOR, at=datetime.now(UTC))
    erp.client_secret = issued.credentials.client_secret


def grant_again(erp: Erp) -> None:
    codes = ["documents:submit", "documents:view"]
    who = {"by": OPERATOR, "at": datetime.now(UTC)}
    grant_permission(taxpayer=represented(), intermediary=erp.role, codes=codes, **who)  # type: ignore[arg-type]


def yesterday() -> datetime:
    return datetime.now(UTC) - DAY


Step = Callable[[Erp], object]
# What ends tokens of every client, and takes it back.
OF_ANY: dict[str, tuple[Step, Step]] = {
    "block": (
        lambda erp: block_system_user(system_user=erp.system_user, **why()),
        lambda erp: unblock_system_user(system_user=erp.system_user, **why()),
    ),
    "own taxpayer": (
        lambda erp: switch_taxpayer(erp.system_user.taxpayer, is_active=False),
        lambda erp: switch_taxpayer(erp.system_user.taxpayer, is_active=True),
    ),
    "expiry": (lambda _: expire(yesterday()), lambda _: expire(None)),
    "scopes": (lambda _: change_scopes("Other"), lambda _: change_scopes(" ".join(SCOPES))),
    "secret": (revoke_all_secrets, replace_secret),
}
# And of those who act for another taxpayer.
OF_INTERMEDIARIES: dict[str, tuple[Step, Step]] = {
    "represented taxpayer": (
        lambda _: switch_taxpayer(represented(), is_active=False),
        lambda _: switch_taxpayer(represented(), is_active=True),
    ),
    "role": (
        lambda erp: switch_role(erp, is_active=False),
        lambda erp: switch_role(erp, is_active=True),
    ),
    "end of the role": (lambda _: end_role(yesterday()), lambda _: end_role(None)),
    "permission": (
        lambda _: revoke_permission(permission=GrantedPermission.objects.get(), **why()),
        grant_again,
    ),
}


def introspection_says(token: str) -> bool:
    active: bool = body_of(new_api(f"Invoicing {uuid4()}").introspect(token))["active"]
    return active


def answers(path: str) -> Callable[[str], bool]:
    return lambda token: call("GET", path, token).status_code == 200


# Who asks, by the scope that a token must have for it; on behalf of another taxpayer or not.
ASKED: dict[str, tuple[str, Callable[[str], bool]]] = {
    "status list": ("InvoicingAPI", lambda token: not is_ended(token)),
    "introspection": ("InvoicingAPI", introspection_says),
    "me": ("InvoicingAPI", answers("/api/v1/me")),
    "self service": ("InvoicingAPI", answers(PERMISSIONS)),
    "management API": ("RegistryAPI", answers(f"{BASE}/taxpayers")),
}
CASES = [
    *((event, asked, "") for event in OF_ANY for asked in ASKED),
    *(
        (event, asked, "on behalf")
        for event in (*OF_ANY, *OF_INTERMEDIARIES)
        for asked in ("status list", "introspection", "me")
    ),
]


@pytest.mark.parametrize(("event", "asked", "on_behalf"), CASES)
def test_a_token_that_ended_stays_ended_and_a_new_one_is_active(
    event: str, asked: str, on_behalf: str, intermediary: Erp, settings: Any
) -> None:
    settings.SCOPES = {**SCOPES, "Other": {"description": "Other", "audience": "Other"}}
    change_scopes(" ".join(SCOPES))
    GrantedPermissionFactory.create(intermediary=intermediary.role)
    tin = str(represented().identifier) if on_behalf else None
    scope, is_active = ASKED[asked]
    end, take_back = (OF_ANY | OF_INTERMEDIARIES)[event]
    old = token_of(intermediary, scope=scope, on_behalf_of=tin)
    assert is_active(old)
    end(intermediary)
    forget_status_lists()
    status_lists().read()  # as every node does twice a second
    assert not is_active(old)
    take_back(intermediary)
    assert not is_active(old)
    new = token_of(intermediary, scope=scope, on_behalf_of=tin)
    assert (is_active(old), is_active(new)) == (False, True)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("event", ["block", "own taxpayer"])
def test_also_where_it_was_switched_off_for_an_instant(
    event: str, asked: str, intermediary: Erp, settings: Any
) -> None:
    """Before any node has looked."""
    settings.SCOPES = SCOPES
    change_scopes(" ".join(SCOPES))
    scope, is_active = ASKED[asked]
    old = token_of(intermediary, scope=scope)
    for step in OF_ANY[event]:
        step(intermediary)
    new = token_of(intermediary, scope=scope)
    assert (is_active(old), is_active(new)) == (False, True)
