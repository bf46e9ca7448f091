"""A real Chromium for the tests of the staff's pages, driven by Playwright.

Import the fixtures `browser` and `staff_pages` in the test module; the tests in this folder share
one service and one browser (conftest.py). No browser runs while other tests use Django's models:
Playwright keeps an event loop going, and Django refuses to query there.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartService
from tests.support import servers

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


@dataclass(frozen=True)
class Chromium:
    """Where the program is; it runs for one test at a time."""

    program: str


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


def find_chromium() -> Chromium:
    """Raises NotAvailable where there is none, or no Playwright."""
    try:
        import playwright.sync_api  # noqa: F401 - is it installed?
    except ImportError:
        raise servers.NotAvailable("no Playwright here: the package is not installed") from None
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    for name in filter(None, names):
        if program := shutil.which(name):
            return Chromium(program)
    raise servers.NotAvailable("no Chromium here: none on the PATH, and CHROMIUM names none")


@pytest.fixture
def staff_pages(service: StartService, postgres_url: str, tmp_path: Path) -> str:
    """The address of a service in production, with the superuser `boss`."""
    from tests.support.accounts import PASSWORD  # needs Django's models

    environment = servers.service_environment(tmp_path, 0, DATABASE_URL=postgres_url)
    servers.manage(environment, "collectstatic", "--noinput", "-v0")
    servers.manage(
        environment | {"DJANGO_SUPERUSER_PASSWORD": PASSWORD},
        *("createsuperuser", "--noinput", "--username", "boss", "--email", "boss@example.org"),
    )
    return service(postgres_url).url.replace("127.0.0.1", "localhost")


@contextmanager
def open_chromium(chromium: Chromium) -> Iterator[Any]:
    """A running Chromium with a profile of its own, of Playwright's type `Browser`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium.program, args=_ARGUMENTS, timeout=60_000
        )
        yield launched
        launched.close()


def open_window(launched: Any, **options: Any) -> Browser:
    """A new window with cookies of its own, which remembers what the browser complains about."""
    page = launched.new_context(**options).new_page()
    page.set_default_timeout(15_000)
    opened = Browser(page)
    page.on("console", lambda message: _listen(opened, message))
    page.on("pageerror", lambda error: opened.complaints.append(f"{page.url}: {error}"))
    return opened


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A new window; the test fails if a page breaks its content security policy or a script fails.

    Ask for it after the fixtures that use Django's models.
    """
    with open_chromium(find_chromium()) as launched:
        opened = open_window(launched)
        yield opened
    assert opened.complaints == []


def _listen(opened: Browser, message: Any) -> None:
    if message.location["url"].endswith("/favicon.ico"):
        return  # asked for by the browser, not by a page
    if message.type == "error" or "Content Security Policy" in message.text:
        opened.complaints.append(f"{opened.page.url}: {message.text}")
