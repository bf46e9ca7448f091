"""What ends soon as a list to print, click by click."""

from datetime import timedelta

from django.utils import timezone

from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office

TIN = "C7775560010"


def test_all_rows_are_selected_and_the_list_is_printed_in_2_clicks(office: Office) -> None:
    manage, day = office.service.manage, timezone.localdate() + timedelta(days=1)
    manage("register_taxpayer", TIN, "--name", "Kedai Runcit Johor Sdn Bhd")
    for name in ("Kedai Muar", "Kedai Segamat"):
        manage("issue_credentials", TIN, "--name", name, "--expires", f"{day}")
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto("/admin/ending-soon/?kind=system_user&within=7")
    page.get_by_label("Select all").check()
    boxes = page.locator("[name=selected]")
    assert boxes.count() >= 2
    assert all(box.is_checked() for box in boxes.all())
    press(page, "List to print")
    says(page, "Called")
    page.emulate_media(media="print")
    assert not page.get_by_role("link", name="Today").is_visible()
    assert page.get_by_text(TIN).first.is_visible()
    assert clicks.count == 2
