"""`deploy/upgrade` by docs/operations.md, with real nodes behind the real nginx, under load."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.operations.machine import RELEASES, Machine, blocks_of
from tests.servers.nginx import Balancer, Ports, free_ports, start_balancer
from tests.servers.postgres import Postgres
from tests.servers.processes import kill_group, stopping
from tests.support.erp import PATH, Erp

pytestmark = pytest.mark.processes

(UPGRADE,), (BACK,) = blocks_of("Upgrade"), blocks_of("Roll back")


@dataclass
class Production:
    """What *Install* has made, and what its operator has changed since."""

    machine: Machine
    ports: Ports

    def install(self) -> None:
        machine, etc = self.machine, self.machine.settings.parent
        machine.install()
        machine.write_settings()
        with machine.settings.open("a") as settings:
            settings.write("LOGIN_RETENTION=2555d\nWEB_PROCESSES=1\n")
        preparation, units, proxy = blocks_of("Install")[4:]
        machine.run(preparation, ACCOUNT="officer", NAME="Mariam")
        drop_in = machine.folder / "etc/systemd/system/identity-staff.service.d/override.conf"
        drop_in.parent.mkdir()
        command = f"/usr/bin/env SERVE=staff PORT={self.ports.staff} .venv/bin/gunicorn"
        drop_in.write_text(
            f"[Service]\nExecStart=\nExecStart={command} --config deploy/gunicorn.conf.py\n"
        )
        for usual, port in zip(("8000", "8001"), self.ports.nodes, strict=True):
            units = units.replace(f"@{usual}", f"@{port}")
        machine.run(units)
        copy, edit, render = proxy.splitlines(keepends=True)
        machine.run(copy + edit)
        own = {"SITE": machine.folder / "etc/nginx/conf.d/identity.conf", "STAFF_HOST": "s.test"}
        settings_of_proxy = (etc / "proxy.env").read_text()
        for name, value in own.items():
            settings_of_proxy += f"{name}={value}\n"
        (etc / "proxy.env").write_text(settings_of_proxy)
        machine.run(render)

    def versions(self) -> dict[str, str]:
        """The folder in which each unit runs; nothing for one that does not run."""
        pids = {file.name: file.read_text() for file in (self.machine.folder / "run").iterdir()}
        folders = {name: Path(f"/proc/{pid}/cwd") for name, pid in sorted(pids.items())}
        return {name: cwd.readlink().name if cwd.exists() else "" for name, cwd in folders.items()}

    def local(self) -> dict[str, tuple[int, bytes]]:
        """Every file below /etc."""
        files = (path for path in (self.machine.folder / "etc").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}

    def stop(self) -> None:
        for file in (self.machine.folder / "run").glob("*"):
            kill_group(int(file.read_text()))


@contextmanager
def clients_logging_in(balancer: Balancer, erp: Erp) -> Iterator[Counter[int]]:
    """The statuses of the logins of some clients at the same time, until the end of the block."""
    answers, is_over = Counter[int](), threading.Event()

    def log_in() -> None:
        url, headers = balancer.ports.https_url, {"Host": "id.example.org"}
        with httpx.Client(base_url=url, verify=balancer.tls, headers=headers) as client:
            while not is_over.wait(0.02):
                answers[client.post(PATH, data=erp.form).status_code] += 1

    with ThreadPoolExecutor() as threads:
        begun = [threads.submit(log_in) for _ in range(3)]
        try:
            yield answers
        finally:
            is_over.set()
    for one in begun:
        one.result()


@pytest.fixture(scope="module")
def production(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[Production]:
    folder = tmp_path_factory.mktemp("upgrade") / "machine"
    made = Production(Machine(folder, postgres, postgres.create_database()), free_ports())
    with stopping(made):
        made.install()
        yield made


def test_an_upgrade_loses_no_login_and_no_setting_and_can_go_back(production: Production) -> None:
    machine, nodes = production.machine, list(production.ports.nodes)
    manage = f"{machine.folder}/opt/identity/deploy/manage"
    machine.run(f"{manage} register_taxpayer C1000000001 --name Sample")
    issue = f"{manage} issue_credentials C1000000001 --name ERP --logins-per-minute 0 --json"
    issued = json.loads(machine.run(issue))
    before = production.local()
    assert any(b"server_name s.test;" in content for _, content in before.values())
    machine.release("2")
    machine.calls()
    balancer = start_balancer(production.ports)
    with stopping(balancer):
        erp = Erp(issued["client_id"], issued["client_secret"])
        with clients_logging_in(balancer, erp) as answers:
            machine.run("umask 077\n" + UPGRADE.replace("VERSION", "2"))
            seen = answers.total()
            assert set(production.versions().values()) == {"identity-2"}
            machine.run(BACK)
        assert (set(answers), seen > 20) == ({200}, True)
    assert (machine.version, set(production.versions().values())) == (
        "identity-1.0.0",
        {"identity-1.0.0"},
    )
    asked = ("make", "show", "list-units")
    restarts = [call for call in machine.calls() if not call.startswith(asked)]
    units = [f"identity-login@{port}.service" for port in sorted(nodes)]
    order = [f"restart {unit}" for unit in (*units, "identity-staff.service")]
    assert restarts == ["daemon-reload", *order, "reload nginx"] * 2
    assert production.local() == before
    assert (machine.folder / "opt/identity-2/deploy").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("commands", "fault"),
    [
        (BACK, "There is no version before this one.\n"),
        (UPGRADE.replace("VERSION", "1.2.0"), "A version knows the tables of the next one only"),
        (UPGRADE.replace("VERSION", "1.1.0"), "Cannot read file:///"),
    ],
)
def test_no_way_back_to_nothing_nor_over_a_version(
    tmp_path: Path, postgres: Postgres, commands: str, fault: str
) -> None:
    machine = Machine(tmp_path / "machine", postgres, "")
    machine.install()
    done = machine.tried(commands)
    assert done.stderr.startswith(fault)
    assert (done.returncode, machine.version) == (1, "identity-1.0.0")


def test_it_stops_at_the_first_node_that_is_not_ready(production: Production) -> None:
    machine = production.machine
    machine.release("3", last_words="a fault of version 3")
    done = machine.tried(UPGRADE.replace("VERSION", "3"), READY_SECONDS="1")
    (first, _), *others = production.versions().items()
    assert done.returncode == 1
    assert f"{first} is not ready: No answer on port" in done.stderr
    assert "identity/deploy/upgrade --back" in done.stderr
    assert {version for _, version in others} == {"identity-1.0.0"}
    machine.run(BACK)
    assert set(production.versions().values()) == {"identity-1.0.0"}


def test_a_version_that_a_check_refuses_changes_nothing(production: Production) -> None:
    machine = production.machine
    settings = machine.settings.read_text()
    machine.release("4")
    wrong = settings.replace("id.example.org,staff", "other.example.org,staff")
    machine.settings.write_text(f"{wrong}OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9\n")
    machine.calls()
    before, version = production.versions(), machine.version
    done = machine.tried(UPGRADE.replace("VERSION", "4"))
    machine.settings.write_text(settings)
    assert (done.returncode, "Failed: sudo" in done.stderr) == (1, True), done.stderr
    assert (production.versions(), machine.version) == (before, version)
    assert machine.calls()[0].endswith("install REQUIREMENTS=requirements-traces.txt")


@pytest.mark.parametrize("changed", ["archive", "digests", "signers", "none"])
def test_only_what_a_known_signer_has_signed_is_installed(
    production: Production, changed: str, tmp_path: Path
) -> None:
    machine, releases = production.machine, tmp_path / "mirror"
    version = f"5-{changed}"
    shutil.copytree(machine.release(version), releases)
    archive = releases / f"identity-{version}.tar.gz"
    if changed in ("archive", "digests"):
        archive.write_bytes(archive.read_bytes() + b"\0")
    if changed == "digests":
        machine.run(f"cd {releases}; sha256sum *.tar.gz > SHA256SUMS")
    signers = machine.settings.with_name("release_signers")
    known = signers.read_text()
    if changed == "signers":
        machine.run(f"ssh-keygen -q -t ed25519 -N '' -f {tmp_path}/other")
        signers.write_text(f"identity-releases {(tmp_path / 'other.pub').read_text()}")
    fetch = UPGRADE.replace("VERSION", version).replace(RELEASES, str(releases))
    (tmp_path / "make").write_text("#!/bin/sh\nexit 1\n")  # no further than this
    (tmp_path / "make").chmod(0o755)
    done = machine.tried(f"PATH={tmp_path}:$PATH\n{fetch}")
    signers.write_text(known)
    installed = (machine.folder / f"opt/identity-{version}").exists()
    assert installed == (changed == "none"), done.stderr
    says = {"archive": "is not the one that was signed", "none": "Failed: env make"}
    assert says.get(changed, "Failed: ssh-keygen") in done.stderr
