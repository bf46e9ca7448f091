"""What staff do on any page: press, search, read."""

from typing import Any

import pytest

# Once for each page, however many tests of this window have asked for it.
COUNT_CLICKS = """
if (!window.countsClicks) {
  window.countsClicks = true;
  addEventListener("click", (event) => {
    if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1;
  }, true);
}
"""


def press(page: Any, title: str) -> None:
    """The link or the button of that title, among the buttons of the page itself or below More."""
    buttons = page.locator("#main, main, body").last
    either = buttons.get_by_role("link", name=title).or_(buttons.get_by_role("button", name=title))
    more = page.locator("details.more:not([open])", has_text=title).locator("summary")
    either.or_(more).first.wait_for()
    if not either.count():
        more.click()
    either.first.click()


def find(page: Any, kind: str, term: str) -> None:
    page.goto(f"/admin/{kind}/")
    page.locator("#searchbar").fill(term)
    page.locator("#searchbar").press("Enter")
    page.wait_for_url("**q=**")
    page.locator("#result_list tbody a[href*='/change/']").first.click()
    page.wait_for_url("**/change/**")


def says(page: Any, text: str) -> None:
    page.get_by_text(text).first.wait_for()


def tab_to(page: Any, title: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate_handle("document.activeElement").as_element()
        if title in focused.inner_text() and focused.is_visible():
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", title
            return
    pytest.fail(f"60 times Tab do not lead to {title!r}")


def too_wide_parts(page: Any) -> list[str]:
    parts = "html, main, .list-table, .panel, .search-results"
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{parts}')]"
        ".filter(part => part.scrollWidth > part.clientWidth + 1)"
        ".map(part => part.className || part.tagName)"
    )
    return found


# Numbers, client IDs, TINs, dates, times, references, addresses, and codes that a break divides.
_DIVIDED = r"""() => {
    const whole = new RegExp([
        "ci_test_\\w+", "\\bC\\d{10}\\b", "\\d{1,2} [A-Z][a-z]{2} \\d{4}", "\\b\\d\\d:\\d\\d\\b",
        "[0-9a-f-]{36}", "\\b\\d+(\\.\\d+){3}\\b", "\\bdocuments:\\w+",
    ].join("|"), "g");
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const text = texts.currentNode;
        const parent = text.parentElement;
        if (parent.closest(".sr-only, .breadcrumbs") || !parent.checkVisibility()) continue;
        const is_whole = parent.closest(".number:not(th), .figures dd, .today :is(time, .badge)");
        for (const match of text.data.matchAll(is_whole ? /\S.*/g : whole)) {
            const range = document.createRange();
            range.setStart(text, match.index);
            range.setEnd(text, match.index + match[0].length);
            const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top / 4)));
            if (lines.size > 1) found.push(match[0]);
        }
    }
    for (const input of document.querySelectorAll("main input[type=text]")) {
        const is_cut = innerWidth >= 1024 && input.scrollWidth > input.clientWidth + 1;
        if (is_cut) found.push(input.value); // on a phone it scrolls
    }
    const field = document.querySelector("#searchbar");
    if (field) {
        const style = getComputedStyle(field);
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = style.font;
        const beside = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
        const room = field.clientWidth - beside;
        if (pen.measureText(field.placeholder).width > room) found.push(field.placeholder);
    }
    return found;
}"""


def divided_values(page: Any) -> list[str]:
    """What people copy or compare and is on two lines, or is cut in its field."""
    found: list[str] = page.evaluate(_DIVIDED)
    return found


class Clicks:
    def __init__(self, page: Any) -> None:
        self.page = page
        page.add_init_script(COUNT_CLICKS)
        page.goto("/admin/")
        self.reset()

    def reset(self) -> None:
        self.page.evaluate("sessionStorage.clicks = 0")

    @property
    def count(self) -> int:
        return int(self.page.evaluate("Number(sessionStorage.clicks)"))
