"""From ask to the first token, by strangers to our code: a vendor, a portal, and a real browser."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.test import override_settings
from requests_oauth2client import OAuth2Client
from werkzeug.serving import make_server

from tests.browser import open_window
from tests.browser.support.accessibility import THEME_RULES, violations
from tests.browser.support.office import PHONE, WIDE
from tests.client_auth.key_erp import jwks, new_pair
from tests.conftest import StartService
from tests.permission_requests.parties import ALL_SCOPES
from tests.permission_requests.stand_in_portal import new_portal
from tests.servers.processes import CHECKOUT, free_port
from tests.servers.service import Service

pytestmark = pytest.mark.processes
TAXPAYER, AGENT, SUBMIT = "C2584563222", "C9876543210", "documents:submit"


@dataclass
class Scene:
    service: Service
    vendor: dict[str, str]
    portal_url: str

    def log_in(self, **kwargs: Any) -> Any:
        client = OAuth2Client(
            f"{self.service.url}/connect/token",
            client_id=self.vendor["client_id"],
            client_secret=self.vendor["client_secret"],
            testing=True,  # no TLS in a test
        )
        with client.session:
            return client.client_credentials(**kwargs)

    def ask(self, **body: Any) -> dict[str, Any]:
        sent = {"taxpayer": TAXPAYER, "permissions": [SUBMIT, "documents:view"], **body}
        url, token = f"{self.service.url}/api/v1/permission-requests", self.log_in()
        answer = requests.post(url, json=sent, auth=token, timeout=20)
        assert answer.status_code == 202, answer.text
        return answer.json()  # type: ignore[no-any-return]

    def poll(self, request: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.service.url}/api/v1/permission-requests/{request['id']}"
        answer = requests.get(url, auth=self.log_in(), timeout=20)
        return answer.json()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def scene(
    chromium: Any, services: StartService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    folder, portal_port = tmp_path_factory.mktemp("confirm"), free_port()
    portal_url = f"http://127.0.0.1:{portal_port}/permission-requests"
    service = services(SCOPES=json.dumps(ALL_SCOPES), PORTAL_URL=portal_url)
    with override_settings(SCOPES=ALL_SCOPES):
        for tin, name in ((TAXPAYER, "Kedai Aminah"), (AGENT, "Awan Invois Sdn Bhd")):
            service.manage("register_taxpayer", tin, "--name", name)
        service.manage("register_intermediary", AGENT)
        service.manage("register_taxpayer", "C1000000000", "--name", "Tax authority")
        scopes = ("--scope", "InvoicingAPI", "PermissionRequestAPI", "--logins-per-minute", "0")
        vendor = service.manage("issue_credentials", AGENT, "--name", "ERP", *scopes)
        service.manage("change_system_user", vendor["client_id"], "--return-address", portal_url)
        pair = new_pair(kid="portal")
        (folder / "jwks.json").write_text(jwks(pair), encoding="utf-8")
        clients = {}
        for kind, duty in (("permission", "permissions"), ("connection", "credentials")):
            issued = ("issue_credentials", "C1000000000", "--name", kind, "--jwks")
            scope = ("--scope", f"RegistryAPI:{duty}")
            registered = service.manage(*issued, str(folder / "jwks.json"), *scope)
            clients[kind] = registered["client_id"]
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        key = pair.private.private_bytes(*form).decode()
        app = new_portal(f"{service.url}/confirm", clients, "portal", key)
        server = make_server("127.0.0.1", portal_port, app, threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Scene(service, vendor, portal_url)
        server.shutdown()


def sign_in(page: Any, asked: dict[str, Any]) -> None:
    page.goto(asked["confirm_url"])  # leads to the portal
    page.get_by_label("For").fill(TAXPAYER)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.gate
def test_from_ask_to_the_first_token(scene: Scene, chromium: Any) -> None:
    asked = scene.ask(return_address=scene.portal_url, reference="case 7")
    window = open_window(chromium, locale="en-GB", java_script_enabled=False)
    sign_in(window.page, asked)
    assert "Awan Invois Sdn Bhd (C9876543210)" in window.page.inner_text("h1")
    opened_at = window.page.url
    window.page.get_by_role("button", name="Approve", exact=True).click()
    assert window.page.url.startswith(f"{scene.portal_url}?request={asked['id']}&state=approved")
    assert not [c for c in window.page.context.cookies() if "session" in c["name"]]
    assert scene.poll(asked)["state"] == "approved"
    token = scene.log_in(requests_kwargs={"headers": {"onbehalfof": TAXPAYER}})
    assert token.expires_in > 3500
    window.page.goto(opened_at)
    assert "was used before" in window.page.inner_text("h1")
    window.page.context.close()
    # The server answers the replay with 400, which the console of the browser shows.
    assert all("400" in complaint for complaint in window.complaints)


@pytest.mark.gate
def test_from_a_new_key_to_the_first_token(scene: Scene, chromium: Any, tmp_path: Path) -> None:
    guide = (CHECKOUT / "docs/erp-developers.md").read_text(encoding="utf-8")
    program = guide.partition("### Connect without a secret")[2].partition("```python\n")[2]
    program = program.partition("```")[0].replace("https://id.example.org", scene.service.url)
    program = program.replace("C9990000020", TAXPAYER)
    program = program.replace(", proof).client", ", proof, testing=True).client")  # no TLS here
    erp = subprocess.Popen([sys.executable, "-c", program], stdout=PIPE, stderr=STDOUT, text=True)
    assert erp.stdout is not None
    line = erp.stdout.readline().split()
    window = open_window(chromium, locale="ms-MY", viewport=PHONE, java_script_enabled=False)
    sign_in(window.page, {"confirm_url": line[1]})
    shown = window.page.inner_text("main")
    assert " ".join(line[-5:]) in shown  # the fingerprint that the ERP shows
    assert "Luluskan hanya jika" in shown
    window.page.screenshot(path=str(tmp_path / "connection.png"), full_page=True)
    window.page.get_by_role("button", name="Luluskan", exact=True).click()
    window.page.get_by_text("Permintaan diluluskan.").wait_for()
    output, _ = erp.communicate(timeout=30)
    assert (erp.returncode, output.startswith("eyJ")) == (0, True), output  # a token
    window.page.context.close()
    assert window.complaints == []


def test_nothing_keeps_people_out_of_it(scene: Scene, chromium: Any, tmp_path: Path) -> None:
    """WCAG 2.2 AA by axe, light and dark, wide and on a phone, also of a refusal."""
    found: list[str] = []
    for size in (WIDE, PHONE):
        window = open_window(chromium, locale="en-GB", viewport=size)
        page = window.page
        sign_in(page, scene.ask(reference=f"case {size['width']}"))
        page.locator("summary").click()
        for scheme, rules in (("light", ()), ("dark", THEME_RULES)):
            page.emulate_media(color_scheme=scheme)
            found += violations(page, rules)
        wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner
        page.emulate_media(color_scheme="light")
        page.screenshot(path=str(tmp_path / f"confirm-{size['width']}.png"), full_page=True)
        page.reload()  # the ticket again
        found += violations(page)
        page.context.close()
    assert found == []
