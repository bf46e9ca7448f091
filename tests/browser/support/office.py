"""The staff's pages with the sample of a real day, and windows in which staff are signed in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.browser import Browser, open_window
from tests.live.cluster import login_at
from tests.servers.processes import free_port, stopping
from tests.servers.service import Service, manage, service_environment, start_service
from tests.support.accounts import PASSWORD, new_staff, totp_code, with_totp
from tests.support.erp import Erp

# One of each role; each with an authenticator app that knows tests.support.accounts.TOTP_SECRET.
STAFF = {
    "registrar": "nurul",
    "security officer": "kumar",
    "viewer": "siti",
    "auditor": "farid",
    "account manager": "mariam",
    "": "boss",
}


@dataclass
class Office:
    """A running service; each test has a window of its own for each role that it asks for."""

    service: Service
    chromium: Any
    credentials: dict[str, Any]  # what the demo says about its two sample clients
    windows: dict[tuple[str, str], Browser] = field(default_factory=dict)
    _signed_in: dict[str, Any] = field(default_factory=dict)  # a code is good once

    @property
    def url(self) -> str:
        return self.service.url

    def page(self, role: str, size: str = "wide") -> Any:
        if (role, size) not in self.windows:
            self.windows[role, size] = self._window(role, WIDE if size == "wide" else PHONE)
        return self.windows[role, size].page

    def _window(self, role: str, viewport: dict[str, int]) -> Browser:
        given: dict[str, Any] = {"base_url": self.url, "viewport": viewport, "locale": "en-GB"}
        window = open_window(self.chromium, storage_state=self._signed_in.get(role), **given)
        window.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        if role not in self._signed_in:
            sign_in(window.page, STAFF[role])
            self._signed_in[role] = window.page.context.storage_state()
        return window

    def log_in(self, client_id: str, client_secret: str) -> httpx.Response:
        return login_at(self.service, Erp(client_id, client_secret))

    def close_windows(self) -> list[str]:
        """Closes every window; returns what the browser complained about in them."""
        found = [complaint for window in self.windows.values() for complaint in window.complaints]
        for window in self.windows.values():
            window.page.context.close()
        self.windows.clear()
        return found


WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def sign_in(page: Any, name: str) -> None:
    page.goto("/admin/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/authenticate/**")
    page.locator("[name=code]").fill(totp_code())
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/admin/")


@contextmanager
def open_office(folder: Path, chromium: Any, **settings: str) -> Iterator[Office]:
    environment = service_environment(folder, free_port(), **settings)
    credentials = json.loads(manage(environment, "demo", "--no-serve", "--json"))
    started = start_service(environment, folder / "service.log")
    with stopping(started):
        started.run(lambda: [with_totp(new_staff(role, name)) for role, name in STAFF.items()])
        yield Office(started, chromium, credentials)
