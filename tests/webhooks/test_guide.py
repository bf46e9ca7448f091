"""docs/webhooks.md: its receiver and its commands, run as they are written."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from identity.webhooks.event_types import EVENT_TYPES, TEST
from tests.servers.processes import CHECKOUT, free_port, listens, start_process, stop_process
from tests.servers.service import service_environment
from tests.support.databases import MigratedSqlite

GUIDE = (CHECKOUT / "docs" / "webhooks.md").read_text(encoding="utf-8")
(RECEIVER,) = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def test_it_lists_every_type_of_event() -> None:
    table = GUIDE.partition("| type | when |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+\.\w+)`", table)) == sorted([*EVENT_TYPES, TEST])


@pytest.mark.processes
def test_its_receiver_accepts_what_its_commands_send(
    migrated_sqlite: MigratedSqlite, tmp_path: Path
) -> None:
    port = free_port()
    migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
    environment = service_environment(
        tmp_path, 0, SERVE="staff", WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8"
    )
    text = COMMANDS
    for name, place in {
        "https://portal.example.org": f"http://127.0.0.1:{port}",
        ".venv/bin/python manage.py": f"{sys.executable} {CHECKOUT / 'manage.py'}",
    }.items():
        assert name in text
        text = text.replace(name, place)
    register, others = text.split("\n", 1)

    def shell(lines: str) -> str:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    shell(register)
    program, log = tmp_path / "receiver.py", tmp_path / "receiver.log"
    assert "8443" in RECEIVER
    program.write_text(RECEIVER.replace("8443", str(port)), encoding="utf-8")
    receiver = start_process(
        [sys.executable, str(program)], log, lambda: listens(port), cwd=tmp_path
    )
    try:
        shown = shell(others)
    finally:
        stop_process(receiver, signal.SIGKILL)
    assert "1 delivered, 0 waiting" in shown
    assert "webhook.test \n" in log.read_text()
