"""Every page for everybody (WCAG 2.2 AA): light, dark, two languages, every screen, by keyboard."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from tests.browser.conftest import StartOffice
from tests.browser.support.accessibility import THEME_RULES, violations
from tests.browser.support.clicks import divided_values, tab_to, too_wide_parts
from tests.browser.support.office import PHONE, Office
from tests.browser.support.pages import every_path, kind_of, name_of, names_of_pages

BOSS = ""
# Of the elements of a page: what they are, and how they are drawn.
KINDS = "Array.from(document.body.querySelectorAll('*'), e => `${e.tagName} ${e.className}`)"
SCREEN = {"width": 1280, "height": 800}
ENLARGED = {"width": 640, "height": 400}  # the same screen at 200 %
# On a phone axe also looks at the size of what a finger must hit: one with each kind of links.
LINKS_ON_A_PHONE = ("taxpayers_change_report", "taxpayers_systemuser_rotate_secret")


@pytest.fixture(scope="package")
def paths(whole_office: Office) -> list[str]:
    return whole_office.service.run(every_path)


@pytest.mark.gate
def test_no_page_is_forgotten(paths: list[str]) -> None:
    assert {name_of(path) for path in paths} == names_of_pages()


@pytest.mark.gate
def test_nothing_keeps_people_out_of_one_page_of_each_template(
    office: Office, paths: list[str]
) -> None:
    one_of_each = list({kind_of(path): path for path in paths}.values())
    assert 10 <= len(one_of_each) < len(paths) / 4
    found = _faults(office, one_of_each, "light", "en", {})
    found += _faults(office, one_of_each[:2], "dark", "ms", {})
    assert found == [], "\n".join(found)


def test_nothing_keeps_people_out_of_a_page_and_it_fits_every_screen(
    office: Office, paths: list[str]
) -> None:
    """Dark and in Malay are only some pages, which together have every kind of element."""
    kinds: dict[str, set[str]] = {}
    found = _faults(office, paths, "light", "en", kinds)
    seen: set[str] = set()
    again = []
    for path in sorted(paths, key=lambda path: -len(kinds[path])):
        if not kinds[path] <= seen:
            again.append(path)
            seen |= kinds[path]
    assert 10 < len(again) < len(paths)
    found += _faults(office, again, "dark", "ms", {})
    assert found == [], "\n".join(found)


def _faults(
    office: Office, paths: list[str], theme: str, language: str, kinds: dict[str, set[str]]
) -> list[str]:
    """What is wrong on these pages; `kinds` gets the kinds of elements that each of them has."""
    page = office.page(BOSS)
    page.emulate_media(color_scheme=theme)
    page.context.add_cookies([{"name": "django_language", "value": language, "url": office.url}])
    found: list[str] = []
    for path in paths:
        page.goto(path)
        assert urlsplit(page.url).path == urlsplit(path).path, "it leads elsewhere"
        drawn = page.evaluate("[document.documentElement.lang, document.documentElement.className]")
        assert (drawn[0], "dark" in drawn[1].split()) == (language, theme == "dark"), path
        kinds[path] = set(page.evaluate(KINDS))
        found += violations(page, THEME_RULES if theme == "dark" else ())
        for size in (ENLARGED, PHONE, SCREEN):
            page.set_viewport_size(size)
            found += [f"{path} {size['width']} px: {name}" for name in _too_wide(page)]
            if size == PHONE and name_of(path) in LINKS_ON_A_PHONE:
                found += violations(page)
    return found


def _too_wide(page: Any) -> list[str]:
    """What is wider than its place, also after a while: charts follow a new size a little later."""
    for _ in range(20):
        if not too_wide_parts(page):
            return []
        page.wait_for_timeout(250)
    return too_wide_parts(page)


def test_of_a_long_name_the_breadcrumbs_show_the_beginning(office: Office) -> None:
    page = office.page("registrar")
    page.set_viewport_size({"width": 1024, "height": 800})  # less than all three need
    page.goto("/admin/taxpayers/grantedpermission/?state=in_force")
    page.locator("#result_list tbody a[href*='/change/']").first.click()
    page.wait_for_url("**/change/**")
    page.goto(page.url.partition("change/")[0] + "revoke_permission/")
    crumbs = page.locator(".breadcrumbs li > *")
    assert crumbs.count() == 3
    for crumb in crumbs.all():  # one that is wider than its place is replaced by dots as a whole
        assert crumb.evaluate("c => c.getBoundingClientRect().right") <= crumb.evaluate(
            "c => c.parentElement.getBoundingClientRect().right"
        )


def test_no_client_id_date_or_reference_is_divided(office: Office) -> None:
    page = office.page(BOSS)
    for path in (
        *("/admin/taxpayers/systemuser/", "/admin/tokens/loginevent/", "/admin/search/?q=sdn"),
        *("/admin/ending-soon/?within=90", "/admin/taxpayers/change/report/"),
        *(
            "/admin/staff/staffsignin/",
            f"/admin/taxpayers/change/as_of/?about=ci_test_{'3Gw' * 9}W",
        ),
        f"/admin/taxpayers/change/as_of/?about=C2590001010&day={timezone.localdate()}",
    ):
        page.goto(path)
        links = page.locator("#result_list tbody a[href*='/change/']")
        record = links.first.get_attribute("href") if links.count() else None
        for address in filter(None, (path, record)):
            page.goto(address)
            for width in (390, 1360, 1920, 2560):
                page.set_viewport_size({"width": width, "height": 900})
                assert divided_values(page) == [], (address, width)


def test_the_main_action_is_reached_by_keyboard_alone(office: Office) -> None:
    page = office.page("security officer")
    page.goto("/admin/taxpayers/systemuser/")
    tab_to(page, "Issue credentials")
    page.keyboard.press("Enter")
    page.wait_for_url("**/issue_credentials/**")
    tab_to(page, "Issue credentials")
    page.keyboard.press("Enter")
    page.locator(".field-error").first.wait_for()  # the form was sent, and says what it lacks


# Of *Today* which card is more than half empty, and which hour is not below its bar.
MISPLACED = """() => {
    const empty = [...document.querySelectorAll(".today .panel")].filter(panel => {
        const bottoms = [...panel.children].map(child => child.getBoundingClientRect().bottom);
        const box = panel.getBoundingClientRect();
        return Math.max(...bottoms) - box.top < box.height / 2;
    }).map(panel => `half empty: ${panel.innerText}`);
    const columns = [...document.querySelectorAll(".bars-column")];
    const wrong = [...document.querySelectorAll(".bars-labels span")].filter((label, number) => {
        const bar = columns[number * 4].getBoundingClientRect();
        return Math.abs(bar.left - label.getBoundingClientRect().left) > 4;
    }).map(label => `not below its bar: ${label.innerText}`);
    return [...empty, ...wrong];
}"""


@pytest.fixture(scope="module")
def monday(start_office: StartOffice) -> Office:
    """The sample day in a database of its own: each account that a test adds is a colleague."""
    return start_office()


@pytest.mark.parametrize("width", [390, 1360, 1920, 2560])
@pytest.mark.parametrize("language", ["en", "ms"])
def test_today_fits_the_screen_and_monday_morning_is_on_the_first_one(
    monday: Office, width: int, language: str
) -> None:
    office, page = monday, monday.page(BOSS)
    page.context.add_cookies([{"name": "django_language", "value": language, "url": office.url}])
    page.set_viewport_size({"width": width, "height": 844 if width == 390 else 1080})
    page.goto("/admin/")
    assert page.evaluate(MISPLACED) == []
    assert divided_values(page) == []
    assert _too_wide(page) == []
    titles = page.locator(".today h2").evaluate_all("all => all.map(title => title.id)")
    monday_morning = ["failing", "throttled", "expiring", "colleagues"]
    now = ["logins", "reasons", "key"]  # and not of the last 30 days
    assert titles == [f"{name}-title" for name in (*monday_morning, *now)]
    for panel in monday_morning if width >= 1920 else ():
        box = page.locator(f"[aria-labelledby={panel}-title]").bounding_box()
        assert box["y"] + box["height"] <= 1080, panel
    assert office.close_windows() == []
