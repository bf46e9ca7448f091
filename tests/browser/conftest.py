"""One service and one Chromium for all tests of this folder; both are gone before the next.

Like tests/conftest.py it may be read before Django: nothing that needs models at its top.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import find_chromium, open_chromium

if TYPE_CHECKING:
    from tests.browser.office import Office


@pytest.fixture(scope="package")
def whole_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Office"]:
    """The staff's pages with the sample of a real day."""
    chromium = find_chromium()
    from tests.browser.office import open_office

    folder = tmp_path_factory.mktemp("office")
    with open_chromium(chromium) as launched, open_office(folder, launched) as opened:
        yield opened


@pytest.fixture
def office(whole_office: "Office") -> Iterator["Office"]:
    """The same; the test fails if a page breaks its content security policy or a script fails."""
    yield whole_office
    assert whole_office.complaints() == []
