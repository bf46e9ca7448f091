"""The recipe of docs/operations.md with the units of systemd, behind `deploy/nginx.conf`.

Not run are the commands that need root, git or systemd itself: tests/operations/ checks what they
name.
"""

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import jwt
import pytest

from tests.live.cluster import CLIENT
from tests.operations.machine import (
    assignments,
    blocks_of,
    commands_of,
    paths,
    written,
)
from tests.servers.nginx import (
    CONFIGURATION,
    MTLS_NAME,
    STAFF_ADDRESS,
    Balancer,
    free_ports,
    start_balancer,
)
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, changed, ran, start_process, stopping
from tests.servers.service import Service, is_ready, manage
from tests.support.erp import PATH, Erp
from tests.support.over_http import sign_in

PUBLIC, STAFF = "id.example.org", "staff.id.example.org"
OFFICER = "officer"
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
    """What the recipe has started."""

    balancer: Balancer
    nodes: list[Service]
    folder: Path

    def browser(self, host: str, address: str) -> httpx.Client:
        """One that finds this host at the proxy, and comes from that address."""
        transport = httpx.HTTPTransport(verify=self.balancer.tls, local_address=address)
        url = self.balancer.ports.https_url
        return httpx.Client(base_url=url, transport=transport, timeout=30, headers={"Host": host})

    def manage(self, *arguments: str) -> str:
        """What a command prints to an operator of the staff node."""
        return manage(self.nodes[-1].environment, *arguments)

    def issue(self) -> Erp:
        self.manage("register_taxpayer", "C1000000001", "--name", "Sample")
        issued = json.loads(
            self.manage("issue_credentials", "C1000000001", "--name", "ERP", "--json")
        )
        return Erp(issued["client_id"], issued["client_secret"])


@pytest.fixture(scope="module")
def production(
    tmp_path_factory: pytest.TempPathFactory, empty_database: str
) -> Iterator[Production]:
    """The recipe, with only addresses, ports and folders of a test."""
    folder, ports = tmp_path_factory.mktemp("production"), free_ports()
    own = paths(folder, folder / "var")
    settings = written(folder / "identity.env", {"DATABASE_URL": empty_database, **own})
    _program, _settings, secrets, _database, preparation, _units, _proxy = blocks_of("Install")
    group = f"chgrp {os.getgid()}"
    commands = [
        changed(secrets, ("/etc/identity", str(folder)), ("chgrp identity", group)),
        changed(preparation, ("sudo -u identity", "env"), ("/opt/identity", str(CHECKOUT))),
    ]
    ran(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd="/",
        env={
            "PATH": os.environ["PATH"],
            "IDENTITY_ENV": str(settings),
            "ACCOUNT": OFFICER,
            "NAME": "Mariam",
        },
    )
    # All that systemd gives to a service.
    environment = {"PATH": os.environ["PATH"], **assignments(settings)}
    login, staff = "identity-login@.service", "identity-staff.service"
    started: list[Service] = []
    try:
        for unit, usual, port in (
            (login, "8000", ports.nodes[0]),
            (login, "8001", ports.nodes[1]),
            (staff, "8002", ports.staff),
        ):  # the one before must be stopped if this one fails
            started.append(start_unit(unit, usual, port, environment, folder))
        balancer = start_balancer(ports)
        with stopping(balancer):
            yield Production(balancer, started, folder)
    finally:
        with stopping(*started):
            pass


@pytest.fixture(scope="module")
def empty_database(postgres: Postgres) -> str:
    return postgres.create_database()


def start_unit(
    unit: str, usual_port: str, port: int, environment: dict[str, str], folder: Path
) -> Service:
    """What systemd would start: the commands of the unit, in their order, but for the port."""
    *before, command = (
        shlex.split(line.replace(f"PORT={usual_port}", f"PORT={port}"))
        for line in commands_of(unit, usual_port)
    )
    for words in before:
        subprocess.run(words, cwd=CHECKOUT, env=environment, check=True)
    url, log = f"http://127.0.0.1:{port}", folder / f"node-{port}.log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        name = f"notify-{os.getpid()}-{port}"
        systemd.bind(f"\0{name}")
        systemd.settimeout(5)
        process = start_process(
            command, log, lambda: is_ready(url), env={**environment, "NOTIFY_SOCKET": f"@{name}"}
        )
        try:
            told = systemd.recv(4096)
        except TimeoutError:
            told = b""
        assert told.startswith(b"READY=1"), f"Type=notify waits for it: {log.read_text()}"
    given = dict(word.split("=", 1) for word in command if re.match(r"[A-Z_]+=", word))
    return Service(url, {**environment, **given}, process, log)


def test_an_erp_system_logs_in_at_the_public_address(production: Production) -> None:
    erp = production.issue()
    with production.browser(PUBLIC, CLIENT) as client:
        answers = [client.post(PATH, data=erp.form) for _ in range(6)]
        keys = client.get("/.well-known/jwks.json").json()["keys"]
    assert [answer.status_code for answer in answers] == [200] * 6
    token = answers[0].json()["access_token"]
    key = jwt.PyJWK(keys[0])
    claims = jwt.decode(
        token, key, algorithms=["ES256"], audience="InvoicingAPI", issuer=f"https://{PUBLIC}"
    )
    assert claims["sub"] == "C1000000001"


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
    *public, staff = production.nodes
    answer = httpx.get(f"{staff.url}{path}", headers=https)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"].startswith(f"https://{STAFF}/api/v1/management/problems/")
    for node in public:
        assert httpx.get(f"{node.url}{path}", headers=https).status_code == 404


def test_no_node_needs_more_in_its_environment_than_the_recipe_sets(production: Production) -> None:
    """Each answers for Django's settings module itself, although it is named nowhere."""
    for node in production.nodes:
        environment = Path(f"/proc/{node.pid}/environ").read_bytes()
        assert b"VAR_DIR=" in environment
        assert b"DJANGO_SETTINGS_MODULE" not in environment
        assert is_ready(node.url)


def test_the_recipe_and_the_proxy_name_the_same_hosts_and_ports() -> None:
    given, proxy = assignments(), CONFIGURATION.read_text()
    # And one that may be left out: it asks clients for certificates.
    assert set(re.findall(r"server_name (\S+);", proxy)) == {PUBLIC, STAFF, MTLS_NAME}
    assert (given["AUTH_URL"], given["STAFF_URL"]) == (f"https://{PUBLIC}", f"https://{STAFF}")
    (units,) = (block for block in blocks_of("Install") if "systemctl enable" in block)
    ports = set(re.findall(r"identity-login@(\d+)", units))
    ports |= set(re.findall(r"PORT=(\d+)", commands_of("identity-staff.service")[-1]))
    assert set(re.findall(r"server 127\.0\.0\.1:(\d+)", proxy)) == ports
