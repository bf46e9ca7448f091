"""Every main page for everybody: light and dark, on a phone, by keyboard, and with a screen reader.

axe finds what keeps people out (WCAG 2.2 AA); the fixture `office` fails a test whose pages broke
the content security policy or wrote an error to the console.
"""

import pytest

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import tab_to, too_wide_parts
from tests.browser.support.office import Office

BOSS = ""
LISTS = (
    "taxpayers/taxpayer",
    "taxpayers/intermediary",
    "taxpayers/grantedpermission",
    "taxpayers/permissioncode",
    "taxpayers/systemuser",
    "tokens/loginevent",
    "taxpayers/change",
    "tokens/signingkey",
    "tokens/protectedapi",
    "staff/staffaccount",
)
TASKS = (
    "taxpayers/taxpayer/register_taxpayer",
    "taxpayers/taxpayer/import_registry",
    "taxpayers/intermediary/import_intermediaries",
    "taxpayers/systemuser/import_system_users",
    "ending-soon",
    "taxpayers/grantedpermission/grant_permission",
    "taxpayers/systemuser/issue_credentials",
    "tokens/loginevent/what_would_happen",
    "tokens/protectedapi/register_protected_api",
    "staff/staffaccount/create_account",
)
PRINTED = "/admin/ending-soon/?within=90&print=1"
EARLIER = "end_system_user_earlier/"
REPORT, TASK_ON_A_PHONE = "/change/report/", "/rotate_secret/"


@pytest.fixture(scope="package")
def paths(whole_office: Office) -> list[str]:
    """The main pages: the first one, every list, a record of each, and the forms."""
    whole_office.service.manage("register_protected_api", "Sample", "--audience", "InvoicingAPI")
    page = whole_office.page(BOSS)
    records = []
    for name in LISTS:
        page.goto(f"/admin/{name}/")
        records.append(page.locator("#result_list tbody a[href*='/change/']").first)
        records[-1] = records[-1].get_attribute("href").partition("?")[0]
    user = next(record for record in records if "/systemuser/" in record).removesuffix("change/")
    lists = [f"/admin/{name}/" for name in (*LISTS, *TASKS)]
    page.goto("/admin/taxpayers/systemuser/?state=blocked")
    blocked = page.locator("#result_list tbody a[href*='/change/']").first.get_attribute("href")
    unblock = blocked.partition("change/")[0] + "unblock_system_user/"
    tasks = ("block_system_user/", "rotate_secret/", "revoke_secret/", "retire_secret/", EARLIER)
    searches = ["/admin/search/?q=sdn", "/admin/taxpayers/taxpayer/?q=nothing-like-this", PRINTED]
    history = [f"/admin/taxpayers{REPORT}", "/admin/taxpayers/change/as_of/"]
    return [
        "/admin/",
        *lists,
        *searches,
        *history,
        *records,
        *(f"{user}{task}" for task in tasks),
        unblock,
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_keeps_people_out_of_a_page(office: Office, paths: list[str], theme: str) -> None:
    page = office.page(BOSS)
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    found: list[str] = []
    for path in paths:
        page.goto(path)
        is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
        assert is_dark is (theme == "dark"), path
        found += violations(page)
    page.emulate_media(color_scheme="light")
    assert found == []


def test_on_a_phone_no_page_is_too_wide_and_every_link_can_be_hit(
    office: Office, paths: list[str]
) -> None:
    page = office.page(BOSS, "phone")
    found: list[str] = []
    for path in paths:
        page.goto(path)
        wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide > window:
            found.append(f"{path}: {wide} px in {window} px")
        if REPORT in path or path.endswith(TASK_ON_A_PHONE):  # one with each kind of links
            found += violations(page)
    assert found == []


def test_nothing_is_wider_than_its_place(office: Office, paths: list[str]) -> None:
    """On a screen of 1280 pixels: neither the page, nor a table in its panel or list."""
    page = office.page(BOSS)
    too_wide = []
    for path in paths:
        page.goto(path)
        too_wide += [f"{path}: {name}" for name in too_wide_parts(page)]
    assert too_wide == []


def test_figures_of_the_first_page_lead_to_their_lists(office: Office) -> None:
    page = office.page("auditor")
    page.goto("/admin/")
    links = page.locator(".figures a, .panel > table td a, a.figure")
    addresses = sorted({link.get_attribute("href") for link in links.all()})
    assert len(addresses) > 10
    for address in addresses:
        answer = page.request.get(address)
        assert answer.status == 200, address
    figure = page.locator(".figures a").first
    count = figure.inner_text()
    assert int(count.replace(",", "")) > 0
    figure.click()
    page.wait_for_url("**/loginevent/**")
    assert page.locator("#result_list tbody tr").count() > 0


def test_the_main_action_is_reached_by_keyboard_alone(office: Office) -> None:
    page = office.page("security officer")
    page.goto("/admin/taxpayers/systemuser/")
    tab_to(page, "Issue credentials")
    page.keyboard.press("Enter")
    page.wait_for_url("**/issue_credentials/**")
    tab_to(page, "Issue credentials")
    page.keyboard.press("Enter")
    page.locator(".field-error").first.wait_for()  # the form was sent, and says what it lacks
