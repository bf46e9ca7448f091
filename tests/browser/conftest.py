"""One Chromium and one service for all tests of this folder; they end with its last test.

No test of another folder runs meanwhile in the same process: Playwright keeps an event loop going,
and Django refuses to query there. Like tests/conftest.py this may be read before Django: nothing
that needs models at its top.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.browser import open_chromium
from tests.servers.certificates import MTLS_URL

if TYPE_CHECKING:
    from tests.browser.support.office import Office
    from tests.support.databases import MigratedSqlite


# A service with MTLS_URL does not start without a trusted proxy; no test comes from this one.
NOBODY = "192.0.2.1"


@pytest.fixture(scope="package")
def chromium(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Any]:
    """The test database is set up before: while Chromium runs, Django refuses to do so."""
    with open_chromium() as launched, django_db_blocker.unblock():
        yield launched


StartOffice = Callable[[], "Office"]


@pytest.fixture(scope="package")
def start_office(
    chromium: Any, migrated_sqlite: "MigratedSqlite", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartOffice]:
    from tests.browser.support.office import open_office

    with ExitStack() as stack:

        def start() -> "Office":
            folder = tmp_path_factory.mktemp("office")
            migrated_sqlite.write_to(folder / "identity.sqlite3")
            settings = {"MTLS_URL": MTLS_URL, "TRUSTED_PROXIES": NOBODY}
            return stack.enter_context(open_office(folder, chromium, **settings))

        yield start


@pytest.fixture(scope="package")
def whole_office(start_office: StartOffice) -> "Office":
    return start_office()


@pytest.fixture
def office(whole_office: "Office") -> Iterator["Office"]:
    """The same; the test fails if a page breaks its content security policy or a script fails."""
    yield whole_office
    assert whole_office.close_windows() == []
