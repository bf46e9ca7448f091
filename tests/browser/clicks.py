"""What staff do on any page: press, search, read."""

from typing import Any


def press(page: Any, title: str) -> None:
    """The link or the button of that title, among the buttons of the page itself."""
    buttons = page.locator("#main, main, body").last
    either = buttons.get_by_role("link", name=title).or_(buttons.get_by_role("button", name=title))
    either.first.click()


def find(page: Any, kind: str, term: str) -> None:
    """Search the list of that kind, and open what is found."""
    page.goto(f"/admin/{kind}/")
    page.locator("#searchbar").fill(term)
    page.locator("#searchbar").press("Enter")
    page.wait_for_url("**q=**")
    page.locator("#result_list tbody a[href*='/change/']").first.click()
    page.wait_for_url("**/change/**")


def says(page: Any, text: str) -> None:
    """The page shows this text."""
    page.get_by_text(text).first.wait_for()


class CountedClicks:
    """Presses on one page, counted: how much work a task is."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.count = 0

    def press(self, title: str) -> None:
        press(self.page, title)
        self.count += 1
