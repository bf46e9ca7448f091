"""A process with SERVE=login carries neither the staff pages nor their libraries."""

import json
import sys
from dataclasses import dataclass

import pytest

from tests.servers.processes import CHECKOUT, completed
from tests.servers.service import manage, service_environment

TIN = "C1234567890"
STAFF_APPLICATIONS = {
    *("django.contrib.admin", "django.contrib.humanize", "django.contrib.messages", "allauth"),
    *("django.contrib.sessions", "django.contrib.staticfiles", "csp", "fido2", "identity.api"),
    *("identity.webhooks", "drf_spectacular", "identity.staff", "identity.staff_settings"),
    "identity.confirm",
    *("python_calamine", "qrcode", "unfold", "whitenoise", "xlsxwriter"),
}
STAFF_COMMANDS = {
    *("account_unsetmultipleprimaryemails", "clearsessions", "collectstatic", "findstatic"),
    *("activate_account", "confirm_account", "create_account", "deactivate_account"),
    *("change_role", "decline_account", "rename_account", "change_webhook", "list", "show"),
    *("reset_second_factor", "set_first_password", "verify_history"),
    *("deliver_webhooks", "disable_webhook", "enable_webhook", "list_webhooks", "nightly_webhooks"),
    *("register_webhook", "repeat_webhook", "rotate_webhook_secret", "send_test_webhook"),
}
SHOWN = """
import json
from django.conf import settings as s
from django.core.management import get_commands
print(json.dumps([s.INSTALLED_APPS, s.MIDDLEWARE, sorted(get_commands())]))
"""

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Worker:
    """One process that has answered a login, and the environment that it was started with."""

    environment: dict[str, str]
    status: str
    modules: set[str]

    def manage(self, *arguments: str, **settings: str) -> str:
        return manage(self.environment | settings, *arguments)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Worker:
    environment = service_environment(tmp_path_factory.mktemp("login"), 0, SERVE="login")
    manage(environment, "migrate", "-v0")
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
    return Worker(environment, answer["status"], set(answer["modules"]))


def parents(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts) + 1)}


def test_no_module_of_the_staff_pages_is_imported(worker: Worker) -> None:
    assert worker.status == "200 OK"
    assert {name for name in worker.modules if parents(name) & STAFF_APPLICATIONS} == set()


def test_no_module_of_the_pages_for_developers_is_imported_before_the_first_one_is_opened(
    worker: Worker,
) -> None:
    of_developers = {name for name in worker.modules if parents(name) & {"identity.developers"}}
    assert of_developers == {"identity.developers", "identity.developers.urls"}
    assert not worker.modules & {"yaml", "jsonschema", "drf_spectacular"}
