"""`deploy/container/Containerfile`, and what a build may see; `make container` builds it."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.servers.processes import CHECKOUT, free_port

FOLDER = CHECKOUT / "deploy" / "container"
TEXT = (FOLDER / "Containerfile").read_text(encoding="utf-8")
VISIBLE = re.findall(r"^!(.+)$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE)
PAGES = ["/guide", "/clientcheck.py", "/openapi.json", "/errors/secret_expired", "/ms/"]
OPEN_PAGES = f"""
from django.conf import settings
from django.test import Client
for path in {PAGES}:
    print(path, Client().get(path, headers={{"host": "127.0.0.1"}}).status_code)
"""


@pytest.mark.processes
def test_a_build_sees_all_that_the_service_reads_and_nothing_else(tmp_path: Path) -> None:
    assert not {"tests", "bench", ".venv", "var", ".git"} & {name.split("/")[0] for name in VISIBLE}
    for name in VISIBLE:
        place = tmp_path / "seen" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", OPEN_PAGES],
        cwd=tmp_path / "seen",
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [f"{path} 200" for path in PAGES], done.stderr


def test_the_image_runs_as_a_number_and_starts_the_server_of_production() -> None:
    stage = TEXT.rpartition("FROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", stage, re.MULTILINE)
    assert 'CMD ["gunicorn", "--config", "deploy/gunicorn.conf.py"]' in stage
    assert "STOPSIGNAL SIGTERM" in stage
    assert 'CMD ["python", "-I", "deploy/container/is_ready.py"]' in stage
    assert "deploy/container/is_ready.py" in VISIBLE


def test_every_package_is_checked_by_its_hash_and_the_base_can_be_pinned() -> None:
    assert "--require-hashes --requirement ${REQUIREMENTS}" in TEXT
    assert "ARG REQUIREMENTS=requirements.txt\n" in TEXT
    assert set(re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)) == {"${BASE}"}


class Node(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/health/ready" else 404)
        self.end_headers()
        self.wfile.write(b'{"database": "unavailable"}')

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def node() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Node) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def health(port: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", FOLDER / "is_ready.py"],
        env={"PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


def test_a_container_is_healthy_while_its_node_is_ready(
    node: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert health(node) == (0, "")
    monkeypatch.setattr(Node, "status", 503)
    assert health(node) == (1, '{"database": "unavailable"}')
    port = free_port()
    status, line = health(port)
    assert status == 1
    assert line.startswith(f"No answer on port {port}")
