"""`deploy/container/compose.yaml`: right for Docker Compose, and closed to the machine.

That nginx, PgBouncer and PostgreSQL work as they are started there is in the other tests of this
folder; that the image does, in `make container`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from identity.configuration.setting_list import SETTINGS
from proofs.containers.composed import EXAMPLE, FOLDER, compose, rendered, service
from tests.operations.runbook import blocks_of
from tests.operations.units import commands_of
from tests.servers.processes import CHECKOUT

pytestmark = pytest.mark.processes

NODES = ["login-1", "login-2", "staff"]
OURS = [*NODES, "migrate", "nightly", "counts", "webhooks", "manage"]
ALL = [*OURS, "nginx", "pooler", "primary", "standby"]
_JOBS = (
    ("nightly", "identity-nightly"),
    ("counts", "identity-count"),
    ("webhooks", "identity-webhooks"),
)
IMAGE = (FOLDER / "Containerfile").read_text(encoding="utf-8")


def test_docker_compose_finds_no_fault_and_starts_these() -> None:
    assert set(rendered()["services"]) == set(ALL)
    started = compose("config", "--services").stdout.split()
    assert set(ALL) - set(started) == {"manage"}


def test_docker_compose_finds_a_fault(tmp_path: Path) -> None:
    without = EXAMPLE.read_text().replace("PUBLIC_HOST=", "PUBLIC_HOSE=")
    (tmp_path / "env").write_text(without)
    done = compose("config", "--quiet", environment=tmp_path / "env")
    assert done.returncode != 0
    assert "PUBLIC_HOST" in done.stderr


@pytest.mark.parametrize("name", ALL)
def test_a_container_is_closed_to_the_machine(name: str) -> None:
    given = service(name)
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert "cap_add" not in given
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert not given.get("privileged")
    user = given.get("user") or re.findall(r"^USER (\S+)$", IMAGE, re.MULTILINE)[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    limits = given["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= set(limits)
    mounted = [one for one in given.get("volumes", ()) if one["type"] == "bind"]
    assert all(one["read_only"] for one in mounted)


@pytest.mark.parametrize("name", OURS)
def test_every_setting_and_secret_of_a_container_exists(name: str) -> None:
    given = service(name)
    secrets = {one["target"] for one in given["secrets"]}
    for setting, value in given["environment"].items():
        assert setting.removesuffix("_FILE") in SETTINGS, setting
        if setting.endswith("_FILE"):
            assert SETTINGS[setting.removesuffix("_FILE")].is_secret
            assert value in secrets


def test_only_nginx_can_be_reached_and_the_database_reaches_nobody_else() -> None:
    assert [name for name in ALL if service(name).get("ports")] == ["nginx"]
    assert rendered()["networks"]["database"]["internal"] is True
    assert set(service("nginx")["networks"]) == {"front"}
    inside = set(OURS) - {*NODES, "webhooks"}  # which sends to others
    for name in ("pooler", "primary", "standby", *inside):
        assert set(service(name)["networks"]) == {"database"}, name
    address = service("nginx")["networks"]["front"]["ipv4_address"]
    for name in OURS:
        assert service(name)["environment"]["TRUSTED_PROXIES"] == address


def test_every_mounted_file_exists_and_every_secret_is_made(secrets: Path) -> None:
    for name in ALL:
        for one in service(name).get("volumes", ()):
            assert one["type"] == "volume" or Path(one["source"]).is_file(), one
    made = {path.name for path in secrets.iterdir()}
    named = {Path(one["file"]).name for one in rendered()["secrets"].values()}
    assert named - made == {"tls.crt", "tls.key"}  # the operator's own
    assert made <= named


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    subprocess.run([FOLDER / "make_secrets.sh", made], check=True)
    return made


def test_secrets_are_closed_to_other_users_and_never_replaced(secrets: Path) -> None:
    assert secrets.stat().st_mode & 0o777 == 0o700
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    # Docker mounts single files: the folder is closed on the machine, not in a container.
    assert {path.stat().st_mode & 0o777 for path in secrets.iterdir()} == {0o644}
    assert len(set(before.values())) == len(before)
    (secrets / "pooler_users").unlink()
    subprocess.run([FOLDER / "make_secrets.sh", secrets], check=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before


@pytest.mark.parametrize("name", ["login-1", "staff"])
def test_the_settings_of_a_node_pass_every_check(name: str, secrets: Path, tmp_path: Path) -> None:
    given = {
        setting: value.replace("/run/secrets", str(secrets))
        for setting, value in service(name)["environment"].items()
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var"), **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_exists_and_the_nightly_work_is_that_of_systemd() -> None:
    def commands(text: str) -> list[str]:
        return re.findall(r"manage\.py (\w+(?: --[\w-]+ \w+)*)", text)

    named = {name: commands(" ".join(service(name).get("command") or ())) for name in OURS}
    assert named["migrate"] == ["migrate"]
    for name, unit in _JOBS:
        assert named[name] == commands(" ".join(commands_of(f"{unit}.service")))
    for each in [command.split()[0] for commands_ in named.values() for command in commands_]:
        assert each in get_commands()


def test_a_node_has_the_time_that_it_needs_to_stop() -> None:
    unit = (CHECKOUT / "deploy/systemd/identity-login@.service").read_text()
    seconds = re.search(r"TimeoutStopSec=(\d+)", unit)
    assert seconds
    for name in NODES:
        assert service(name)["stop_grace_period"] == f"{seconds[1]}s"
        assert service(name)["healthcheck"]["test"][-1] in IMAGE


def test_the_documented_commands_name_what_exists() -> None:
    blocks = "\n".join(blocks_of("Containers"))
    lines = re.findall(r"docker compose (?!exec|run)(.+)", blocks)
    assert lines
    for name in re.findall(r"docker compose (?:run --rm|exec) (\S+)", blocks):
        assert name in ALL
    for name in re.findall(r"(?:run --rm manage|manage\.py) ([a-z_]+)", blocks):
        assert name in get_commands()
    for file in re.findall(r"(?:\./|deploy/)([\w./-]+\.(?:sh|env|yaml))", blocks):
        assert (
            (FOLDER / file).exists() or (CHECKOUT / "deploy" / file).exists() or file == ".env"
        ), file
