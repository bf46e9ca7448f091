"""The staff's pages with the sample of a real day, and windows in which staff are signed in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.browser import Browser, open_window
from tests.servers.processes import free_port, stopping
from tests.servers.service import Service, manage, service_environment, start_service
from tests.support.accounts import PASSWORD, new_staff, totp_code, with_totp

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
    """A running service, and one window for each role that was asked for."""

    service: Service
    chromium: Any
    credentials: dict[str, Any]  # what the demo says about its two sample clients
    windows: dict[tuple[str, str], Browser] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.service.url

    def page(self, role: str, size: str = "wide") -> Any:
        """The page of a window in which somebody of that role is signed in."""
        if (role, size) not in self.windows:
            self.windows[role, size] = self._signed_in(role, size)
        return self.windows[role, size].page

    def _signed_in(self, role: str, size: str) -> Browser:
        viewport = {"width": 1280, "height": 800} if size == "wide" else PHONE
        given: dict[str, Any] = {"base_url": self.url, "viewport": viewport, "locale": "en-GB"}
        others = [window for (known, _), window in self.windows.items() if known == role]
        if others:  # a code is good once, so the second window of somebody takes over the sign-in
            given["storage_state"] = others[0].page.context.storage_state()
        window = open_window(self.chromium, **given)
        if not others:
            sign_in(window.page, STAFF[role])
        return window

    def log_in(self, client_id: str, client_secret: str) -> httpx.Response:
        """What an ERP system is answered."""
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
        }
        return httpx.post(f"{self.url}/connect/token", data=form, timeout=30)

    def complaints(self) -> list[str]:
        """What the browser complained about since the last time, in any window."""
        found = [complaint for window in self.windows.values() for complaint in window.complaints]
        for window in self.windows.values():
            window.complaints.clear()
        return found


PHONE = {"width": 390, "height": 844}


def sign_in(page: Any, name: str) -> None:
    """Name and password, then the code of the authenticator app."""
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
    """The service on SQLite in `folder`, with the demo's sample and one account of each role."""
    environment = service_environment(folder, free_port(), **settings)
    credentials = json.loads(manage(environment, "demo", "--no-serve", "--json"))
    started = start_service(environment, folder / "service.log")
    with stopping(started):
        started.run(lambda: [with_totp(new_staff(role, name)) for role, name in STAFF.items()])
        yield Office(started, chromium, credentials)
