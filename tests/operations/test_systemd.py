"""The units of `deploy/systemd/`: right for systemd, closed to the machine, and what is documented.

That their commands start what ERP systems log in to is in tests/live/test_production.py.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.operations.units import FOLDER, commands_of
from tests.servers.processes import CHECKOUT, NotAvailable

SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))


@pytest.fixture
def program() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        raise NotAvailable("no systemd-analyze here (Debian: apt install systemd)")
    return found


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """The units as they are installed; of the template an instance."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "identity-login@.service").rename(tmp_path / "identity-login@8000.service")
    return [str(path) for path in sorted(path for path in tmp_path.iterdir() if path.is_file())]


@pytest.mark.processes
def test_systemd_finds_no_fault(program: str, units: list[str]) -> None:
    assert run(program, "verify", "--man=no", *units) == ""


@pytest.mark.processes
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_closed_to_the_machine(program: str, name: str) -> None:
    """At most 2.0 of 10: where systemd begins to say "OK" is 4.5."""
    run(program, "security", "--offline=yes", "--threshold=20", str(FOLDER / name))


def test_every_command_of_a_unit_exists() -> None:
    named = [command for name in SERVICES for command in commands_of(name)]
    assert len(named) >= 6
    for command in named:
        found = re.search(r"\.venv/bin/(?:python manage\.py (\w+)|(gunicorn))", command)
        assert found, command
        assert found[2] or found[1] in get_commands(), command


def test_the_documented_units_exist() -> None:
    text = (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8")
    files = {path.name for path in FOLDER.glob("*.*")}
    lines = "\n".join(re.findall(r"^.*(?:systemctl|journalctl|\.timer).*$", text, re.MULTILINE))
    named = set(re.findall(r"\bidentity-[a-z]+(?:@\d+)?(?:\.timer)?", lines))
    assert {"identity-login@8000", "identity-staff", "identity-nightly.timer"} <= named
    for name in named:
        unit = re.sub(r"@\d+", "@", name)
        assert (unit if "." in unit else f"{unit}.service") in files, name
