"""Clients that generators make of both OpenAPI descriptions, at the service as it runs."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from shutil import copy
from typing import Any

import httpx
import pytest
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from tests.conftest import StartService
from tests.management_api.portal import SCOPES
from tests.servers.npm import install_locked
from tests.servers.processes import ran
from tests.servers.service import Service

pytestmark = pytest.mark.processes

STORIES = Path(__file__).parent / "generated"
DESCRIPTIONS = {"public": "/openapi.json", "management": "/api/v1/management/openapi.json"}
SECONDS = 120.0


@pytest.fixture(scope="module")
def staff_node(services: StartService, django_db_blocker: DjangoDbBlocker) -> Iterator[Service]:
    service = services(SCOPES=json.dumps(SCOPES))
    with override_settings(SCOPES=SCOPES), django_db_blocker.unblock():
        service.manage("register_taxpayer", "C1000000000", "--name", "Tax authority")
        yield service


def run(folder: Path, *command: str | Path, **environment: str) -> str:
    known = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return ran(command, cwd=folder, env={**known, **environment}, timeout=SECONDS)


def described(node: Service, folder: Path) -> None:
    for name, path in DESCRIPTIONS.items():
        (folder / f"{name}.json").write_bytes(httpx.get(f"{node.url}{path}").content)


def assert_story(node: Service, folder: Path, tin: str, *command: str | Path) -> None:
    scope = "RegistryAPI:taxpayers"
    issued = node.manage("issue_credentials", "C1000000000", "--name", tin, "--scope", scope)
    login = {name.upper(): issued[name] for name in ("client_id", "client_secret")}
    told: dict[str, Any] = json.loads(
        run(folder, *command, **login, URL=node.url, TIN=tin, SCOPE=scope)
    )
    assert datetime.fromisoformat(told.pop("registered_at")).tzinfo is not None
    assert told == {
        "refused": "invalid_scope",
        "name": "Kedai Runcit",
        "stale": 412,
        "pointer": "#/name",
        "found": [tin],
    }


def test_openapi_python_client(staff_node: Service, tmp_path: Path) -> None:
    described(staff_node, tmp_path)
    programs = Path(sys.executable).parent  # its own ruff is there, too
    for name in DESCRIPTIONS:
        made = ("--path", f"{name}.json", "--meta", "none", "--output-path", name)
        # It knows no status list, and says so.
        strict = () if name == "public" else ("--fail-on-warning",)
        generator = (programs / "openapi-python-client", "generate", *made, *strict)
        run(tmp_path, *generator, PATH=f"{programs}:{os.environ['PATH']}")
    copy(STORIES / "openapi_python_client.py", tmp_path)
    assert_story(staff_node, tmp_path, "C2584563221", sys.executable, "openapi_python_client.py")


@pytest.fixture(scope="module")
def typescript(staff_node: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both stories, compiled with all that the generators made for them."""
    folder = install_locked(STORIES, tmp_path_factory.mktemp("typescript") / "node")
    described(staff_node, folder)
    programs = folder / "node_modules" / ".bin"
    for name in DESCRIPTIONS:
        run(folder, programs / "openapi-ts", "-i", f"{name}.json", "-o", name)
        run(folder, programs / "openapi-typescript", f"{name}.json", "-o", f"{name}.d.ts")
    run(folder, programs / "tsc")
    return folder


@pytest.mark.parametrize(
    ("story", "tin"), [("openapi_typescript", "C2584563222"), ("openapi_ts", "C2584563223")]
)
def test_generators_of_typescript(
    staff_node: Service, typescript: Path, story: str, tin: str
) -> None:
    assert_story(staff_node, typescript, tin, "node", f"{story}.js")
