"""A process with SERVE=login carries neither the staff pages nor their libraries."""

import json
import sys

import pytest

from tests.servers.processes import CHECKOUT, completed
from tests.servers.service import manage, service_environment
from tests.support.databases import MigratedSqlite

TIN = "C1234567890"
STAFF_APPLICATIONS = {
    *("django.contrib.admin", "django.contrib.humanize", "django.contrib.messages", "allauth"),
    *("django.contrib.sessions", "django.contrib.staticfiles", "csp", "fido2", "identity.api"),
    *("identity.webhooks", "drf_spectacular", "identity.staff", "identity.staff_settings"),
    "identity.confirm",
    *("python_calamine", "qrcode", "unfold", "whitenoise", "xlsxwriter"),
}

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def modules(migrated_sqlite: MigratedSqlite, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What a process has imported that has answered a login."""
    folder = tmp_path_factory.mktemp("login")
    migrated_sqlite.write_to(folder / "identity.sqlite3")
    environment = service_environment(folder, 0, SERVE="login")
    manage(environment, "register_taxpayer", TIN, "--name", "A company")
    issued = json.loads(manage(environment, "issue_credentials", TIN, "--name", "ERP", "--json"))
    done = completed(
        [
            *(sys.executable, "-W", "error", "-m", "tests.support.login_worker"),
            *(issued["client_id"], issued["client_secret"]),
        ],
        cwd=CHECKOUT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "200 OK"
    return set(answer["modules"])


def parents(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts) + 1)}


def test_no_module_of_the_staff_pages_is_imported(modules: set[str]) -> None:
    assert {name for name in modules if parents(name) & STAFF_APPLICATIONS} == set()


def test_no_module_of_the_pages_for_developers_is_imported_before_the_first_one_is_opened(
    modules: set[str],
) -> None:
    of_developers = {name for name in modules if parents(name) & {"identity.developers"}}
    assert of_developers == {"identity.developers", "identity.developers.urls"}
    assert not modules & {"yaml", "jsonschema", "drf_spectacular"}
