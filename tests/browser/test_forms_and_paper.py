"""Where a form lets people begin, and what of a page is printed."""

from tests.browser.support.office import Office

FOCUSED = "document.activeElement.name"
CONTROLS = ":is(button, .button, input, select, textarea, nav.navigation):visible"


def test_the_first_field_and_then_the_first_error_has_the_focus(office: Office) -> None:
    page = office.page("registrar")
    page.goto("/admin/taxpayers/taxpayer/register_taxpayer/")
    assert page.evaluate(FOCUSED) == "identifier"
    page.keyboard.type("C7775560099")
    page.keyboard.press("Enter")
    page.locator(".field-error").first.wait_for()
    assert page.evaluate(FOCUSED) == "name"


def test_a_printed_page_has_no_controls_and_says_who_printed_it_and_when(office: Office) -> None:
    page = office.page("security officer")
    for path in ("/admin/taxpayers/systemuser/", "/admin/", "/admin/taxpayers/change/report/"):
        page.goto(path)
        assert not page.locator(".printed").is_visible()
        page.emulate_media(media="print")
        assert page.locator("h1").is_visible()
        assert page.locator(CONTROLS).count() == 0, path
        assert "Printed by" in page.locator(".printed").inner_text()
        page.emulate_media(media="screen")
