"""The sandbox is served in the test environment alone, by every process that serves logins."""

import json

import pytest

from tests.servers.service import manage, service_environment

pytestmark = pytest.mark.processes

PATHS = ["en/sandbox", "ms/sandbox", "sandbox", "sandbox.json", "sandbox/portal", "sandbox/reset"]
WARNING = {"text": "HTTP Basic is refused.", "from": "2027-01-31", "condition": "every_login"}

# Also what a process says of it: nothing names what is not there.
SHOWN = """
import json
from django.test import Client
from identity.urls import urlpatterns
from tokens.operations.paths import OPERATIONS
client = Client(headers={"host": "localhost"})
pages = [client.get(path) for path in ("/", "/openapi.json", "/SANDBOX")]
print(json.dumps({
    "paths": sorted(str(p.pattern) for p in urlpatterns if "sandbox" in str(p.pattern)),
    "login": OPERATIONS["/connect/token"].begin.__name__,
    "named": ["/sandbox" in page.content.decode().lower() for page in pages],
}))
"""


@pytest.mark.parametrize(
    ("settings", "paths", "login", "named"),
    [
        ({"SERVE": "login", "ENVIRONMENT": "test"}, PATHS, "log_in_with_sandbox", [True] * 3),
        ({"SERVE": "staff", "ENVIRONMENT": "test"}, [], "log_in_with_sandbox", [False] * 3),
        ({"SERVE": "both", "ENVIRONMENT": "live"}, [], "log_in", [False] * 3),
        # The setting wraps the login, and without it nothing does.
        (
            {"ENVIRONMENT": "live", "SYSTEM_WARNINGS": json.dumps([WARNING])},
            *([], "begin_warned", [False] * 3),
        ),
    ],
    ids=["test", "staff", "live", "warned"],
)
def test_the_sandbox_is_in_test_alone(
    tmp_path_factory: pytest.TempPathFactory,
    settings: dict[str, str],
    paths: list[str],
    login: str,
    named: list[bool],
) -> None:
    shell = service_environment(tmp_path_factory.mktemp("var"), 0, **settings)
    assert json.loads(manage(shell, "shell", "--no-imports", "-c", SHOWN)) == {
        "paths": paths,
        "login": login,
        "named": named,
    }
