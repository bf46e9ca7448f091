"""The recipe of docs/operations.md and `deploy/upgrade`, with real nodes behind the real nginx.

Not run are the commands that need root, git or systemd itself: other tests of this folder check
what they name.
"""

import json
import re
import shlex
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import httpx
import jwt
import pytest

from tests.live.cluster import CLIENT
from tests.operations.machine import RELEASES, Machine, assignments, blocks_of, commands_of
from tests.servers.nginx import (
    CONFIGURATION,
    MTLS_NAME,
    STAFF_ADDRESS,
    Balancer,
    free_ports,
    start_balancer,
)
from tests.servers.postgres import Postgres
from tests.servers.processes import kill_group, stopping
from tests.servers.service import is_ready
from tests.support.erp import PATH, Erp
from tests.support.over_http import sign_in

pytestmark = pytest.mark.processes

(UPGRADE,), (BACK,) = blocks_of("Upgrade"), blocks_of("Roll back")
PUBLIC, STAFF = "id.example.org", "staff.id.example.org"
OFFICER, TIN = "officer", "C1000000001"
WITH_TOTP = f"""
from identity.staff.models import FirstPassword
from tests.support.accounts import PASSWORD, User, with_totp
FirstPassword.objects.all().delete()
user = with_totp(User.objects.get(username={OFFICER!r}))
user.set_password(PASSWORD)
user.save()
"""


@dataclass
class Production:
    machine: Machine
    balancer: Balancer

    def install(self) -> None:
        machine, ports = self.machine, self.balancer.ports
        machine.install()
        machine.write_settings()
        with machine.settings.open("a") as settings:
            settings.write("LOGIN_RETENTION=2555d\nWEB_PROCESSES=1\n")
        preparation, units, proxy = blocks_of("Install")[4:]
        machine.run(preparation, ACCOUNT=OFFICER, NAME="Mariam")
        drop_in = machine.folder / "etc/systemd/system/identity-staff.service.d/override.conf"
        drop_in.parent.mkdir()
        command = f"/usr/bin/env SERVE=staff PORT={ports.staff} .venv/bin/gunicorn"
        drop_in.write_text(
            f"[Service]\nExecStart=\nExecStart={command} --config deploy/gunicorn.conf.py\n"
        )
        for usual, port in zip(("8000", "8001"), ports.nodes, strict=True):
            units = units.replace(f"@{usual}", f"@{port}")
        machine.run(units)
        copy, edit, render = proxy.splitlines(keepends=True)
        machine.run(copy + edit)
        site = machine.folder / "etc/nginx/conf.d/identity.conf"
        with machine.settings.with_name("proxy.env").open("a") as settings:
            settings.write(f"SITE={site}\nSTAFF_HOST=s.test\n")
        machine.run(render)

    def manage(self, *arguments: str) -> str:
        return self.machine.run(shlex.join(("/opt/identity/deploy/manage", *arguments)))

    @cached_property
    def erp(self) -> Erp:
        self.manage("register_taxpayer", TIN, "--name", "Sample")
        new = ("issue_credentials", TIN, "--name", "ERP", "--logins-per-minute", "0", "--json")
        issued = json.loads(self.manage(*new))
        return Erp(issued["client_id"], issued["client_secret"])

    def browser(self, host: str, address: str) -> httpx.Client:
        transport = httpx.HTTPTransport(verify=self.balancer.tls, local_address=address)
        url = self.balancer.ports.https_url
        return httpx.Client(base_url=url, transport=transport, timeout=30, headers={"Host": host})

    def pids(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in (self.machine.folder / "run").iterdir()}

    def versions(self) -> dict[str, str]:
        folders = {name: Path(f"/proc/{pid}/cwd") for name, pid in sorted(self.pids().items())}
        return {name: cwd.readlink().name if cwd.exists() else "" for name, cwd in folders.items()}

    def local(self) -> dict[str, tuple[int, bytes]]:
        files = (path for path in (self.machine.folder / "etc").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}

    def stop(self) -> None:
        if (self.machine.folder / "run").exists():
            for pid in self.pids().values():
                kill_group(int(pid))


@contextmanager
def clients_logging_in(production: Production) -> Iterator[Counter[int]]:
    """The statuses of the logins of some clients at the same time, until the end of the block."""
    answers, is_over, form = Counter[int](), threading.Event(), production.erp.form

    def log_in() -> None:
        with production.browser(PUBLIC, CLIENT) as client:
            while not is_over.wait(0.02):
                answers[client.post(PATH, data=form).status_code] += 1

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
    folder = tmp_path_factory.mktemp("production") / "machine"
    balancer = start_balancer(free_ports())
    made = Production(Machine(folder, postgres, postgres.create_database()), balancer)
    with stopping(balancer, made):
        made.install()
        yield made


def test_an_erp_system_logs_in_at_the_public_address(production: Production) -> None:
    with production.browser(PUBLIC, CLIENT) as client:
        answers = [client.post(PATH, data=production.erp.form) for _ in range(6)]
        keys = client.get("/.well-known/jwks.json").json()["keys"]
    assert [answer.status_code for answer in answers] == [200] * 6
    token = answers[0].json()["access_token"]
    key = jwt.PyJWK(keys[0])
    claims = jwt.decode(
        token, key, algorithms=["ES256"], audience="InvoicingAPI", issuer=f"https://{PUBLIC}"
    )
    assert claims["sub"] == TIN


def test_a_member_of_staff_signs_in_at_the_staff_address(production: Production) -> None:
    production.manage("shell", "-c", WITH_TOTP)  # as if they had chosen a password and an app
    with production.browser(STAFF, STAFF_ADDRESS) as browser:
        answer = sign_in(browser, f"https://{STAFF}", OFFICER)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
        assert all("Secure" in cookie for cookie in answer.headers.get_list("Set-Cookie"))
        page = browser.get("/admin/")
        assert page.status_code == 200
        style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
        assert style
        assert browser.get(style[1]).status_code == 200
    with production.browser(STAFF, CLIENT) as outside:
        assert outside.get("/admin/").status_code == 403


def test_the_management_api_is_at_the_address_of_staff_alone(production: Production) -> None:
    path = "/api/v1/management/taxpayers"
    for host, address, status in (
        (STAFF, STAFF_ADDRESS, 401),
        (STAFF, CLIENT, 403),
        (PUBLIC, CLIENT, 404),
        (PUBLIC, STAFF_ADDRESS, 404),
    ):
        with production.browser(host, address) as client:
            assert client.get(path).status_code == status
    https = {"X-Forwarded-Proto": "https", "Host": STAFF}
    ports = production.balancer.ports
    answer = httpx.get(f"http://127.0.0.1:{ports.staff}{path}", headers=https)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"].startswith(f"https://{STAFF}/api/v1/management/problems/")
    for port in ports.nodes:
        assert httpx.get(f"http://127.0.0.1:{port}{path}", headers=https).status_code == 404


def test_no_node_needs_more_in_its_environment_than_the_recipe_sets(production: Production) -> None:
    """Each answers for Django's settings module itself, although it is named nowhere."""
    assert len(production.pids()) == 3
    for pid in production.pids().values():
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"VAR_DIR=" in environment
        assert b"DJANGO_SETTINGS_MODULE" not in environment
    ports = production.balancer.ports
    assert all(is_ready(f"http://127.0.0.1:{port}") for port in (*ports.nodes, ports.staff))


def test_the_recipe_and_the_proxy_name_the_same_hosts_and_ports() -> None:
    given, proxy = assignments(), CONFIGURATION.read_text()
    # And one that may be left out: it asks clients for certificates.
    assert set(re.findall(r"server_name (\S+);", proxy)) == {PUBLIC, STAFF, MTLS_NAME}
    assert (given["AUTH_URL"], given["STAFF_URL"]) == (f"https://{PUBLIC}", f"https://{STAFF}")
    (units,) = (block for block in blocks_of("Install") if "systemctl enable" in block)
    ports = set(re.findall(r"identity-login@(\d+)", units))
    ports |= set(re.findall(r"PORT=(\d+)", commands_of("identity-staff.service")[-1]))
    assert set(re.findall(r"server 127\.0\.0\.1:(\d+)", proxy)) == ports


def test_an_upgrade_loses_no_login_and_no_setting_and_can_go_back(production: Production) -> None:
    machine, before = production.machine, production.local()
    assert any(b"server_name s.test;" in content for _, content in before.values())
    machine.release("2")
    machine.calls()
    with clients_logging_in(production) as answers:
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
    units = [f"identity-login@{port}.service" for port in sorted(production.balancer.ports.nodes)]
    order = [f"restart {unit}" for unit in (*units, "identity-staff.service")]
    assert restarts == ["daemon-reload", *order, "reload nginx"] * 2
    assert production.local() == before
    assert (machine.folder / "opt/identity-2/deploy").stat().st_mode & 0o777 == 0o755


def test_no_way_back_to_nothing_nor_over_a_version(tmp_path: Path, postgres: Postgres) -> None:
    machine = Machine(tmp_path / "machine", postgres, "")
    machine.install()
    for commands, fault in (
        (BACK, "There is no version before this one.\n"),
        (UPGRADE.replace("VERSION", "1.2.0"), "A version knows the tables of the next one only"),
        (UPGRADE.replace("VERSION", "1.1.0"), "Cannot read file:///"),
    ):
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
