"""Find anything from anywhere, and reach everything of the frame, with the keyboard alone."""

from pathlib import Path

from tests.browser import open_window
from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import find, says, tab_to, too_wide_parts
from tests.browser.support.office import Office
from tests.client_auth.key_erp import jwks, new_pair

RESULTS = "#search-results a"
LONG = "Syarikat" + "Pengangkutan" * 12 + " Sdn Bhd"


def test_a_taxpayer_is_found_from_any_page_with_0_clicks(office: Office) -> None:
    page = office.page("viewer")
    page.goto("/admin/tokens/loginevent/")
    page.keyboard.press("Control+k")
    page.keyboard.type("semicond selang")
    page.locator(RESULTS).first.wait_for()
    assert page.locator("#search-status").inner_text().endswith(("result", "results"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.matches('#search-results a')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/taxpayers/taxpayer/*/change/")
    says(page, "Selangor Semiconductor Sdn Bhd")


def test_search_and_filters_work_without_script(office: Office) -> None:
    office.page("viewer")  # signed in
    state = office.windows["viewer", "wide"].page.context.storage_state()
    window = open_window(
        office.chromium, base_url=office.url, storage_state=state, java_script_enabled=False
    )
    page = window.page
    page.goto("/admin/taxpayers/systemuser/")
    page.locator("#search-field").fill("ferry langkawi")
    page.locator("#search-field").press("Enter")
    page.wait_for_url("**/admin/search/?q=*")
    says(page, "Langkawi Ferry Lines Sdn Bhd")
    page.goto("/admin/taxpayers/systemuser/")
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("link", name="Blocked").click()
    page.wait_for_url("**state=blocked**")
    page.context.close()
    assert window.complaints == []


def test_the_navigation_opens_on_a_phone_and_stays_hidden_if_wanted(office: Office) -> None:
    phone = office.page("viewer", "phone")
    phone.goto("/admin/")
    assert not phone.get_by_role("link", name="Taxpayers", exact=True).is_visible()
    phone.get_by_role("button", name="Show the navigation").click()
    phone.get_by_role("button", name="Your account").click()
    assert phone.get_by_role("button", name="Sign out").is_visible()
    phone.keyboard.press("Escape")
    phone.get_by_role("link", name="Taxpayers", exact=True).click()
    phone.wait_for_url("**/taxpayers/taxpayer/")
    page = office.page("viewer")
    page.goto("/admin/")
    switch = page.get_by_role("button", name="Navigation")
    switch.click()
    page.goto("/admin/taxpayers/taxpayer/")
    assert not page.locator("#navigation").is_visible()
    assert switch.get_attribute("aria-expanded") == "false"
    switch.click()
    assert page.locator("#navigation").is_visible()


def test_filters_are_opened_and_chosen_by_keyboard(office: Office) -> None:
    page = office.page("viewer")
    page.goto("/admin/taxpayers/systemuser/")
    tab_to(page, "Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    tab_to(page, "Filters")
    page.keyboard.press("Enter")
    filters = page.locator("#changelist-filter")
    assert filters.is_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert not filters.is_visible()
    assert page.evaluate("document.activeElement.innerText").strip().endswith("Filters")
    page.keyboard.press("Enter")
    tab_to(page, "Blocked")
    page.keyboard.press("Enter")
    page.wait_for_url("**state=blocked**")


def test_a_taxpayer_is_suggested_by_words_in_any_order_and_chosen_by_keyboard(
    office: Office,
) -> None:
    page = office.page("security officer")
    page.goto("/admin/taxpayers/systemuser/issue_credentials/")
    field = page.get_by_label("Taxpayer", exact=True)
    field.focus()
    page.keyboard.type("lines langk")
    option = page.get_by_role("option", name="Langkawi Ferry Lines Sdn Bhd")
    option.wait_for()
    page.keyboard.press("ArrowDown")
    assert option.get_attribute("aria-selected") == "true"
    assert violations(page) == []
    page.keyboard.press("Enter")
    assert field.input_value() == "C2581234150"
    assert not option.is_visible()
    assert page.url.endswith("/issue_credentials/")  # the form was not sent


def test_a_long_name_and_a_long_key_id_widen_no_page(office: Office, tmp_path: Path) -> None:
    manage, file = office.service.manage, tmp_path / "keys.json"
    file.write_text(jwks(new_pair(kid="Rotation" * 8)))
    manage("register_taxpayer", "C7772220020", "--name", LONG)
    manage("issue_credentials", "C7772220020", "--name", "Kunci ERP", "--jwks", str(file))
    for size in ("wide", "phone"):
        page = office.page("security officer", size)
        for path in ("", "taxpayers/change/report/", "taxpayers/taxpayer/", "search/?q=pengang"):
            page.goto(f"/admin/{path}")
            assert too_wide_parts(page) == [], (size, path)
        page.get_by_role("link", name=LONG).first.click()
        page.wait_for_url("**/change/**")
        assert too_wide_parts(page) == [], size
        find(page, "taxpayers/systemuser", "C7772220020")
        says(page, "Rotation" * 8)
        record = page.url.partition("change/")[0]
        for task in ("change/", "register_client_key/", "revoke_secret/", "use_client_secret/"):
            page.goto(record + task)
            assert too_wide_parts(page) == [], (size, task)
        assert violations(page) == []
