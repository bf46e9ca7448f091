"""Each scope at each address of the management API, found by the URL configuration."""

import re
from typing import Any

import pytest
from pytest_django import Settings

from identity.api.framework.problems import PROBLEMS
from identity.api.urls import records, urlpatterns
from taxpayers.duties import MANAGEMENT_SCOPES
from taxpayers.models import Change
from tests.introspection.api import token_of
from tests.management_api.portal import BASE, SCOPES, Portal, new_portal, send
from tests.support.erp import Erp

pytestmark = pytest.mark.django_db
METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE")
READS = ("GET", "HEAD")
# Open to everybody: what the API is, and what its problems mean.
PUBLIC = {
    f"{BASE}/openapi.json",
    f"{BASE}/problems/{next(iter(PROBLEMS))}",
    BASE,
    f"{BASE}/",
    f"{BASE}/nothing",
}


@pytest.fixture(autouse=True)
def management_scopes(settings: Settings) -> None:
    settings.SCOPES = SCOPES


def path_of(pattern: Any) -> str:
    """The address, with something that is no record where it names one."""
    path = f"/{pattern.pattern}".replace("<str:kind>", next(iter(PROBLEMS)))
    return re.sub("<(?:str|path):[a-z_]+>", "nothing", re.sub("<int:[a-z_]+>", "4711", path))


PROTECTED = [path_of(pattern) for pattern in records]


def statuses(token: str | None, method: str) -> dict[str, int]:
    """What this token gets at each protected address."""
    body: Any = {} if method in ("POST", "PATCH", "PUT") else None
    return {path: send(method, path, token, body).status_code for path in PROTECTED}


def test_what_is_open_to_everybody_is_decided() -> None:
    assert {path_of(pattern) for pattern in urlpatterns} - set(PROTECTED) == PUBLIC


@pytest.mark.parametrize("method", METHODS)
def test_without_a_token_no_address_opens(method: str) -> None:
    assert set(statuses(None, method).values()) <= {401, 405}
    if method == "GET":
        assert 405 not in {send("GET", path, None).status_code for path in listed()}


@pytest.mark.parametrize("method", METHODS)
def test_an_erp_system_opens_no_address(method: str, erp: Erp) -> None:
    assert set(statuses(token_of(erp), method).values()) <= {403, 405}


# What each scope changes, and what else it reads: the beginning of addresses.
CHANGES: dict[str, tuple[str, ...]] = {
    "RegistryAPI": ("",),
    "RegistryAPI:read": (),
    "RegistryAPI:taxpayers": (
        *("taxpayers", "intermediaries", "imports/taxpayers", "imports/intermediaries"),
    ),
    "RegistryAPI:permissions": ("permissions", "imports/permissions"),
    "RegistryAPI:credentials": ("system-users", "imports/system-users"),
    "RegistryAPI:webhooks": ("webhooks",),
}
ALSO_READS: dict[str, tuple[str, ...]] = {
    "RegistryAPI": (),
    "RegistryAPI:read": ("",),
    "RegistryAPI:taxpayers": (),
    "RegistryAPI:permissions": ("taxpayers", "intermediaries", "permission-codes"),
    "RegistryAPI:credentials": ("taxpayers", "permission-codes", "logins"),
    "RegistryAPI:webhooks": ("changes",),
}


@pytest.mark.parametrize("scope", sorted(MANAGEMENT_SCOPES))
@pytest.mark.parametrize("method", METHODS)
def test_each_scope_opens_its_addresses_and_no_other(scope: str, method: str) -> None:
    caller: Portal = new_portal(scope)
    before = Change.objects.count()
    opened = CHANGES[scope] + (ALSO_READS[scope] if method in READS else ())
    done = {405} if method not in (*READS, "POST", "PATCH") else {200, 400, 404, 405, 422, 428}
    wrong = [
        (path, status)
        for path, status in statuses(caller.token, method).items()
        if status not in (done if path.removeprefix(f"{BASE}/").startswith(opened) else {403, 405})
    ]
    assert not wrong
    assert Change.objects.count() == before


def listed() -> list[str]:
    """The addresses of lists, which are read with GET."""
    return [path for path in PROTECTED if "nothing" not in path and "/imports/" not in path]
