"""`make screenshots`: the pictures of docs/staff.md, from the demo's sample of a real day."""

import os
import shutil
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.servers.service import TEST_SECRETS

FOLDER = Path("docs/staff")
SIZE = {"width": 1280, "height": 800}
THEMES = ("light", "dark")
WHOLE = ("today", "why")  # down to the last panel, not as far as a screen goes
LIGHT_ONLY = (
    "ending-soon",
    "grant",
    "intermediary",
    "report",
    "search",
    "as-of",
    "signing-keys",
    "system-users",
)  # the other pages show what dark looks like


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    os.environ.update(TEST_SECRETS)  # as the service that is started has them
    import django

    django.setup()
    from tests.browser import open_chromium
    from tests.browser.support.office import open_office

    var = Path(tempfile.mkdtemp(prefix="screens-", dir=os.environ["VAR_DIR"]))
    try:
        with open_chromium() as chromium, open_office(var, chromium) as office:
            take_all(office)
    finally:
        shutil.rmtree(var, ignore_errors=True)


def take_all(office: Any) -> None:
    page = office.page("")
    page.set_viewport_size(SIZE)
    for name, path in _paths(page).items():
        for theme in THEMES[:1] if name in LIGHT_ONLY else THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.goto(path)
            _take(page, f"{name}-{theme}", is_whole=name in WHOLE)
    _secret(page)
    _import(page)
    phone = office.page("", "phone")
    phone.goto(_paths(page)["system-user"])
    _take(phone, "phone")


def _paths(page: Any) -> dict[str, str]:
    user = _found(page, "/admin/taxpayers/systemuser/?q=Opera")
    refused = _found(page, "/admin/tokens/loginevent/?reason=system_user_blocked")
    return {
        "today": "/admin/",
        "system-users": "/admin/taxpayers/systemuser/",
        "system-user": user,
        "ending-soon": "/admin/ending-soon/?within=90",
        "block": user.replace("change/", "block_system_user/"),
        "search": "/admin/search/?q=sdn+bhd",
        "taxpayer": _found(page, "/admin/taxpayers/taxpayer/?q=C2581234010"),
        "intermediary": _found(page, "/admin/taxpayers/intermediary/?q=C2590001010"),
        "grant": "/admin/taxpayers/grantedpermission/grant_permission/?intermediary=C2590001010",
        "logins": "/admin/tokens/loginevent/?reason=refused",
        "why": refused,
        "report": "/admin/taxpayers/change/report/",
        "as-of": f"/admin/taxpayers/change/as_of/?about=C2581234010&day={_yesterday()}",
        "signing-keys": "/admin/tokens/signingkey/",
    }


def _yesterday() -> date:
    return (datetime.now(UTC) - timedelta(days=1)).date()


def _found(page: Any, path: str) -> str:
    page.goto(path)
    record = page.locator("#result_list tbody a[href*='/change/']").first.get_attribute("href")
    return str(record).partition("?")[0]


def _secret(page: Any) -> None:
    """The page of a new secret; this one was made for the picture and ends with the demo."""
    page.emulate_media(color_scheme="light")
    page.goto("/admin/taxpayers/systemuser/issue_credentials/?taxpayer=C2581234020")
    page.get_by_label("Name of the ERP system").fill("Warehouse of Port Klang")
    page.get_by_label("Reason").fill("A new ERP system")
    page.locator(".staff form button[type=submit]").click()
    page.locator("#client-secret").wait_for()
    _take(page, "secret-light")


def _import(page: Any) -> None:
    rows = (
        "tin,rob,name,active",
        "C2581239010,,Kilang Papan Jaya Sdn Bhd,yes",
        "no tin,,Kedai Emas Mutiara,yes",
        "C2581239030,,Syarikat Bas Utama Bhd,perhaps",
    )
    file = {
        "name": "taxpayers-november.csv",
        "mimeType": "text/csv",
        "buffer": "\n".join(rows).encode(),
    }
    page.goto("/admin/taxpayers/taxpayer/import_registry/")
    page.locator("input[type=file]").set_input_files(file)
    page.locator(".staff form button[type=submit]").click()
    page.locator("#bad-title").wait_for()
    _take(page, "import-light")


def _take(page: Any, name: str, *, is_whole: bool = False) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.png"
    if is_whole:  # as a screen of that height shows it: the sidebar, too, goes down to the end
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size(SIZE | {"height": height})
    page.screenshot(path=file, animations="disabled")
    if is_whole:
        page.set_viewport_size(SIZE)
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
