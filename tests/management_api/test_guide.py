"""docs/management-api.md, run as it is written: its commands, in their order, and their answers."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from identity.api.framework.problems import PROBLEMS
from identity.api.urls import records
from tests.conftest import StartService
from tests.management_api.portal import BASE, new_portal
from tests.servers.processes import CHECKOUT, free_port
from tests.support.answers import body_of
from tests.support.erp import new_erp

GUIDE = (CHECKOUT / "docs" / "management-api.md").read_text(encoding="utf-8")
FIRST, OTHERS = GUIDE.partition("\n## Addresses\n")[::2]
_BLOCK = re.compile(r"^```(sh|python|json)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANY = "…"


def assert_as_shown(shown: Any, answer: Any) -> None:
    if shown == ANY:
        assert answer
    elif isinstance(shown, dict):
        assert list(shown) == list(answer)
        for name, value in shown.items():
            assert_as_shown(value, answer[name])
    elif isinstance(shown, list):
        assert len(shown) == len(answer)
        for one, other in zip(shown, answer, strict=True):
            assert_as_shown(one, other)
    else:
        assert shown == answer


def test_its_commands_work_as_they_are(
    service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    places = {
        "https://id.example.org": f"http://127.0.0.1:{port}",
        "https://staff.id.example.org": f"http://localhost:{port}",
        ".venv/bin/python manage.py": f"{sys.executable} {CHECKOUT / 'manage.py'}",
    }
    text = FIRST
    for name, place in places.items():
        assert name in text
        text = text.replace(name, place)
    (_, scopes), (_, commands), *blocks = _BLOCK.findall(text)
    monkeypatch.chdir(tmp_path)
    node = service(PORT=str(port), SCOPES=scopes.removeprefix("export SCOPES='").rstrip("'\n"))
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", scopes + commands],
        env=dict(node.environment),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    names: dict[str, Any] = {}
    compared = 0
    for kind, block in blocks:
        if kind == "json":
            assert_as_shown(json.loads(block), names["answer"].json())
            compared += 1
        else:
            exec(block, names)  # noqa: S102 - the guide's own lines
            if "answer" in names:
                assert names["answer"].status_code < 500
                assert len(names["answer"].headers["correlationId"]) == 36  # it is there once
    for session in (names["portal"], names["registry"]):
        session.close()
    assert compared == 4
    assert names["blocked"]["reason"] == "reported as stolen, ticket 4711"


@pytest.mark.django_db
def test_its_examples_of_the_feed_and_of_an_error_are_real_answers() -> None:
    feed, error = (json.loads(text) for kind, text in _BLOCK.findall(OTHERS) if kind == "json")
    client, portal = new_erp(), new_portal()
    path = f"/system-users/{client.client_id}/block"
    assert portal.post(path, {"reason": "x"}, If_Match="*").status_code == 200
    assert_as_shown(feed, body_of(portal.get("/changes")))
    error["type"] = error["type"].replace("https://staff.id.example.org", "http://localhost:8000")
    answer = portal.post("/taxpayers", {"name": "Aminah", "nme": 1})
    assert_as_shown(error, body_of(answer))


def test_its_table_of_problems_is_that_of_the_service() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", OTHERS, re.MULTILINE)
    assert rows == [(kind, str(row.status)) for kind, row in PROBLEMS.items()]


def test_its_table_of_addresses_has_every_address() -> None:
    table = OTHERS.partition("\n## ")[0]
    for path in records:
        last = str(path.pattern).removeprefix(f"{BASE[1:]}/").split("/")[-1]
        if not last.startswith("<"):
            assert f"/{last}`" in table, last
