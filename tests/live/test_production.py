"""The recipe for production of the README, run as it is written, behind `deploy/nginx.conf`."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import jwt
import pytest

from tests.live.cluster import CLIENT
from tests.servers.nginx import (
    CONFIGURATION,
    MTLS_NAME,
    STAFF_ADDRESS,
    Balancer,
    free_ports,
    start_balancer,
)
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, start_process, stopping
from tests.servers.service import Service, clean_environment, is_ready, manage
from tests.support.accounts import PASSWORD
from tests.support.erp import PATH, Erp
from tests.support.over_http import SIGN_IN, sign_in

PUBLIC, STAFF = "id.example.org", "staff.id.example.org"
OFFICER = "officer"
WITH_TOTP = f"""
from tests.support.accounts import User, with_totp
with_totp(User.objects.get(username={OFFICER!r}))
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


def shell_blocks() -> list[str]:
    """The commands of the recipe, in its order: settings, secrets, preparation, nodes."""
    section = (CHECKOUT / "README.md").read_text(encoding="utf-8").partition("\n## Run it for real")
    text = section[2].partition("\n## ")[0]
    blocks = re.findall(r"^( *)```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"(?m)^{indent}", "", block) for indent, block in blocks]


def replaced(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, f"the recipe has no {old}"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def production(
    tmp_path_factory: pytest.TempPathFactory, empty_database: str
) -> Iterator[Production]:
    """The recipe, with only addresses, ports and folders of a test."""
    folder, ports = tmp_path_factory.mktemp("production"), free_ports()
    settings, secrets, preparation, nodes = shell_blocks()
    settings = replaced(
        settings,
        {
            "postgresql://identity@db.example.org/identity": empty_database,
            "/run/secrets": str(folder),
        },
    )
    programs = Path(sys.executable).parent
    preparation = replaced(
        preparation,
        {
            ".venv/bin/": f"{programs}/",
            "createsuperuser": f"createsuperuser --no-input --username {OFFICER} --email o@x.org",
        },
    )
    nodes = replaced(
        nodes,
        {
            ".venv/bin/": f"{programs}/",
            "PORT=8000": f"PORT={ports.nodes[0]}",
            "PORT=8001": f"PORT={ports.nodes[1]}",
            "PORT=8002": f"PORT={ports.staff}",
        },
    )
    environment = {
        **clean_environment(),
        "VAR_DIR": str(folder / "var"),
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{settings}\n{secrets}\n{preparation}"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    started: list[Service] = []
    try:
        for line in nodes.splitlines():  # the one before must be stopped if this one fails
            started.append(start_node(settings, line, environment, folder))  # noqa: PERF401
        balancer = start_balancer(ports)
        with stopping(balancer):
            yield Production(balancer, started, folder)
    finally:
        with stopping(*started):
            pass


@pytest.fixture(scope="module")
def empty_database(postgres: Postgres) -> str:
    return postgres.create_database()


def start_node(settings: str, line: str, environment: dict[str, str], folder: Path) -> Service:
    given = dict(word.split("=", 1) for word in shlex.split(line) if re.match(r"[A-Z_]+=", word))
    url, log = f"http://127.0.0.1:{given['PORT']}", folder / f"node-{given['PORT']}.log"
    process = start_process(
        ["bash", "-euc", f"{settings}\n{line}"], log, lambda: is_ready(url), env=environment
    )
    exported = re.findall(r"([A-Z_]+)=(\S+)", settings)
    return Service(url, {**environment, **dict(exported), **given}, process, log)


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
    production.manage("shell", "-c", WITH_TOTP)  # as if it had set up its app
    with production.browser(STAFF, STAFF_ADDRESS) as browser:
        answer = sign_in(browser, f"https://{STAFF}", OFFICER)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
        page = browser.get("/admin/")
        assert page.status_code == 200
        style = re.search(r'href="(/static/[^"]+\.css)"', page.text)
        assert style
        assert browser.get(style[1]).status_code == 200


def test_browsers_are_told_to_use_https_for_this_host_alone(production: Production) -> None:
    with production.browser(STAFF, STAFF_ADDRESS) as browser:
        answer = browser.get(SIGN_IN)
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", SIGN_IN, "/static/staff/staff.css"])
def test_the_staff_pages_are_not_at_the_public_address(production: Production, path: str) -> None:
    for address in (CLIENT, STAFF_ADDRESS):
        with production.browser(PUBLIC, address) as client:
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    with production.browser(STAFF, CLIENT) as outside:
        assert outside.get(path).status_code == 403


def test_a_public_node_has_no_staff_pages_and_the_staff_node_no_login(
    production: Production,
) -> None:
    https = {"X-Forwarded-Proto": "https", "Host": STAFF}
    *public, staff = production.nodes
    for node in public:
        assert httpx.get(f"{node.url}{SIGN_IN}", headers=https).status_code == 404
    assert httpx.get(f"{staff.url}{SIGN_IN}", headers=https).status_code == 200
    assert httpx.post(f"{staff.url}{PATH}", headers=https).status_code == 404


def test_no_node_needs_more_in_its_environment_than_the_recipe_sets(production: Production) -> None:
    """Each answers for Django's settings module itself, although it is named nowhere."""
    for node in production.nodes:
        environment = Path(f"/proc/{node.pid}/environ").read_bytes()
        assert b"VAR_DIR=" in environment
        assert b"DJANGO_SETTINGS_MODULE" not in environment
        assert is_ready(node.url)


def test_the_secrets_can_be_read_by_their_owner_alone(production: Production) -> None:
    for name in ("secret_key", "key_encryption_keys"):
        file = production.folder / name
        assert file.stat().st_mode & 0o777 == 0o600
        assert len(file.read_text().strip()) >= 50


def test_the_recipe_and_the_proxy_name_the_same_hosts_and_ports() -> None:
    settings, _secrets, _preparation, nodes = shell_blocks()
    proxy = CONFIGURATION.read_text()
    # And one that may be left out: it asks clients for certificates.
    assert set(re.findall(r"server_name (\S+);", proxy)) == {PUBLIC, STAFF, MTLS_NAME}
    assert f"AUTH_URL=https://{PUBLIC} STAFF_URL=https://{STAFF}" in settings
    ports = set(re.findall(r"PORT=(\d+)", nodes))
    assert set(re.findall(r"server 127\.0\.0\.1:(\d+)", proxy)) == ports
