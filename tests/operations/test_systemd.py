"""The units of `deploy/systemd/`: right for systemd, closed to the machine, as documented."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands
from pytest_django.fixtures import Settings

from identity.configuration.refused_start import faults
from identity.configuration.setting_list import SETTINGS
from identity.configuration.systemd_file import assignments
from identity.configuration.texts import ENVIRONMENT_FILE
from tests.operations.machine import FOLDER, commands_of
from tests.servers.processes import CHECKOUT, completed, program_of, ran

SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))


@pytest.fixture
def program() -> str:
    return program_of("systemd", "systemd-analyze")


@pytest.mark.processes
def test_systemd_finds_no_fault(program: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "identity-login@.service").rename(tmp_path / "identity-login@8000.service")
    units = sorted(str(path) for path in tmp_path.iterdir() if path.is_file())
    done = completed([program, "verify", "--man=no", *units])
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.processes
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_closed_to_the_machine(program: str, name: str) -> None:
    """At most 2.0 of 10: where systemd begins to say "OK" is 4.5."""
    ran([program, "security", "--offline=yes", "--threshold=20", FOLDER / name])


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


URL = "postgresql://identity@db.example.org/identity?sslmode=verify-full&sslrootcert=/etc/ca.pem"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"DATABASE_URL={URL}", URL),
        ("DATABASE_URL=a$HOME`id`;b c", "a$HOME`id`;b c"),
        ("DATABASE_URL='a\"b $c'", 'a"b $c'),
        ('DATABASE_URL="a\\"b \\$c \\n"', 'a"b $c \\n'),
        ("DATABASE_URL=a\\\nb", "ab"),
        ("  DATABASE_URL=  a b  ", "a b"),
        ("DATABASE_URL=a # b", "a # b"),
        ("DATABASE_URL=", ""),
        ("# A=b\n; C=d\n\nDATABASE_URL=a=b", "a=b"),
        ("DATABASE_URL=a\nDATABASE_URL=b", "b"),
    ],
)
def test_a_value_is_what_systemd_makes_of_it(line: str, value: str) -> None:
    assert assignments(line) == {"DATABASE_URL": value}


@pytest.mark.parametrize("line", ["DATABASE_URL", "1A=b", "export A=b", "A='b", 'A="b'])
def test_a_line_that_is_no_assignment_stops_the_command(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        assignments(f"# first\n{line}\n")


def test_the_file_that_we_give_away_is_read_as_it_was_written() -> None:
    read = assignments(ENVIRONMENT_FILE.read_text(encoding="utf-8"))
    usual = [setting.assignment.split("=", 1) for setting in SETTINGS.values() if setting.is_usual]
    assert read == dict(usual)


REMOTE = {"HOST": "db.example.org", "OPTIONS": {}}


@pytest.fixture
def live(settings: Settings) -> Settings:
    settings.ENVIRONMENT, settings.IS_HTTPS = "live", False
    settings.AUTH_URL, settings.STAFF_URL = "https://id.example.org", "https://staff.example.org"
    settings.ALLOWED_HOSTS = ["id.example.org", "staff.example.org"]
    settings.TRUSTED_PROXIES = ["10.0.0.5"]
    settings.SECRET_KEY = "9f3b1c5d7e2a4860-Zk2Lq8Vw5Xr1Ty7Nm3Pb6Hs0Jd4Gf9-Uc5Ie8"
    assert list(faults()) == []
    return settings


@pytest.mark.parametrize(
    ("changes", "id_"),
    [
        ({"AUTH_URL": "http://id.example.org"}, "tokens.W001"),
        ({"TRUSTED_PROXIES": []}, "tokens.W002"),
        ({"TRUSTED_PROXIES": ["0.0.0.0/0"]}, "tokens.W006"),
        ({"ALLOWED_HOSTS": ["*"]}, "tokens.W004"),
        ({"ALLOWED_HOSTS": ["staff.example.org"]}, "tokens.W005"),
        ({"MTLS_URL": "https://id.example.org", "PROXY_SECRET": ["x" * 32]}, "tokens.W008"),
        ({"SECRET_KEY": "short"}, "security.W009"),
        ({"DEBUG": True}, "security.W018"),
    ],
)
def test_a_live_server_that_is_not_safe_does_not_start(
    live: Settings, changes: Mapping[str, Any], id_: str
) -> None:
    for name, value in changes.items():
        setattr(live, name, value)
    [fault] = faults()
    assert fault.startswith(f"{id_}: ")
    live.ACCEPTED_RISKS = [id_]
    assert list(faults()) == []
    live.ENVIRONMENT, live.ACCEPTED_RISKS = "test", []
    assert list(faults()) == []  # `check --deploy` warns


@pytest.mark.parametrize(
    ("database", "is_safe"),
    [
        (REMOTE, False),
        (REMOTE | {"OPTIONS": {"sslmode": "require"}}, False),
        (REMOTE | {"OPTIONS": {"sslmode": "verify-ca"}}, True),
        (REMOTE | {"OPTIONS": {"sslmode": "verify-full"}}, True),
        ({"HOST": "127.0.0.1"}, True),
        ({"HOST": "/run/postgresql"}, True),
        ({"HOST": "10.0.0.9"}, False),
    ],
)
def test_a_remote_database_needs_verified_tls(
    live: Settings, database: dict[str, Any], is_safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ({"OPTIONS": {}} | database).items():
        monkeypatch.setitem(live.DATABASES["default"], name, value)
    assert [fault[:11] for fault in faults()] == ([] if is_safe else ["tokens.W009"])


def test_only_what_the_list_has_can_be_accepted(live: Settings) -> None:
    live.ACCEPTED_RISKS = ["tokens.E001"]
    [fault] = faults()
    assert fault.startswith("ACCEPTED_RISKS has tokens.E001: choose from security.W009, ")


def test_https_without_a_word_on_the_environment_is_asked_about(
    live: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENVIRONMENT", raising=False)
    live.IS_HTTPS, live.ENVIRONMENT = True, "test"
    assert list(faults()) == [
        "AUTH_URL is https without ENVIRONMENT: say ENVIRONMENT=live, or ENVIRONMENT=test."
    ]
