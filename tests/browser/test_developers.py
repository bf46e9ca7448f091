"""The pages for developers in a browser: for everybody, light and dark, on a phone, on paper."""

from collections.abc import Iterator
from typing import Any

import pytest

from identity.developers.snippets.catalogue import SNIPPETS
from tests.browser import open_window
from tests.browser.support.accessibility import THEME_RULES, violations
from tests.browser.support.office import PHONE, Office
from tokens.refusals.table import REFUSALS

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
PATHS = (
    *("/errors/rate_limited", "/ms/errors/no_permission", "/errors/", "/ms/errors/"),
    *("/", "/ms/", "/guide", "/ms/guide", "/sandbox", "/ms/sandbox"),
)


@pytest.fixture
def page(whole_office: Office) -> Iterator[Any]:
    """A new window; the test fails if a page breaks its content security policy."""
    window = open_window(whole_office.chromium, base_url=whole_office.url, locale="en-GB")
    yield window.page
    window.page.context.close()
    assert window.complaints == []


def panels(page: Any) -> list[str]:
    shown = [each for each in page.locator(".panel").all() if each.is_visible()]
    return [each.locator("pre").get_attribute("aria-label") for each in shown]


@pytest.mark.parametrize("paths", [pytest.param(PATHS[:1], marks=pytest.mark.gate), PATHS[1:]])
def test_nothing_keeps_people_out_of_a_page(page: Any, paths: tuple[str, ...]) -> None:
    """Another theme changes colours only, and another language no colours."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found: list[str] = []
    for path in paths:
        page.goto(path)
        found += violations(page)
        assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
        if not path.startswith("/ms"):
            page.emulate_media(color_scheme="dark")
            assert page.evaluate(BACKGROUND) == "rgb(18, 22, 29)"
            found += violations(page, THEME_RULES)
            page.emulate_media(color_scheme="light")
    assert found == []


def test_on_a_phone_no_page_is_too_wide(page: Any) -> None:
    page.set_viewport_size(PHONE)
    found = []
    for path in (*PATHS, *(f"/errors/{reason}" for reason in REFUSALS)):
        page.goto(path)
        wide, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide > window:
            found.append(f"{path}: {wide} px in {window} px")
    page.goto("/")
    found += violations(page)  # also the size of what fingers hit
    assert found == []


def test_a_program_is_chosen_by_keyboard_and_shown_alone(page: Any) -> None:
    page.goto("/")
    assert panels(page) == ["token_client.sh"]
    page.locator("#tab-curl").focus()
    for snippet in SNIPPETS[1:]:
        page.keyboard.press("ArrowRight")
        assert panels(page) == [snippet.file]
    page.get_by_text("Node.js", exact=True).click()
    assert panels(page) == ["token_client.mjs"]


def test_on_paper_every_program_is_there_and_none_is_cut_off(page: Any) -> None:
    page.goto("/")
    page.emulate_media(media="print")
    assert panels(page) == [snippet.file for snippet in SNIPPETS]
    heights = page.evaluate(
        "[...document.querySelectorAll('.panel pre')].map(e => e.scrollHeight - e.clientHeight)"
    )
    assert set(heights) == {0}
