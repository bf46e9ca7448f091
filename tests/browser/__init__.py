"""A real Chromium for the tests of the staff pages, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers.processes import NotAvailable

# No sandbox: the tests may run as root in a container. The rest keeps it quiet and offline.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Browser:
    """One window: its page, and what the browser complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def add_passkey_device(self) -> None:
        """A phone or laptop that keeps passkeys and has recognised its owner (WebAuthn 11)."""
        cdp = self.page.context.new_cdp_session(self.page)
        cdp.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})


@contextmanager
def open_chromium() -> Iterator[Any]:
    """Playwright's `Browser` with a new profile. Raises NotAvailable where there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NotAvailable("no Playwright here: the package is not installed") from None
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise NotAvailable("no Chromium here: none on the PATH, and CHROMIUM names none")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program, args=_ARGUMENTS, timeout=60_000
        )
        yield launched
        launched.close()


def open_window(launched: Any, **options: Any) -> Browser:
    page = launched.new_context(**options).new_page()
    page.set_default_timeout(15_000)
    opened = Browser(page)
    page.on("console", lambda message: _listen(opened, message))
    page.on("pageerror", lambda error: opened.complaints.append(f"{page.url}: {error}"))
    return opened


def _listen(opened: Browser, message: Any) -> None:
    if message.location["url"].endswith("/favicon.ico"):
        return  # asked for by the browser, not by a page
    if message.type == "error" or "Content Security Policy" in message.text:
        opened.complaints.append(f"{opened.page.url}: {message.text}")
