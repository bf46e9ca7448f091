"""The sandbox is served in the test environment alone, by every process that serves logins."""

import json

import pytest

from tests.servers.service import manage, service_environment

PATHS = ["en/sandbox", "ms/sandbox", "sandbox", "sandbox.json", "sandbox/reset"]

pytestmark = pytest.mark.processes

SHOWN = """
import json
from identity.urls import urlpatterns
from tokens.operations.login import log_in
from tokens.operations.paths import OPERATIONS
print(json.dumps({
    "paths": sorted(str(p.pattern) for p in urlpatterns if "sandbox" in str(p.pattern)),
    "plain": OPERATIONS["/connect/token"].begin is log_in,
}))
"""


@pytest.mark.parametrize(
    ("environment", "serve", "paths", "plain"),
    [
        ("test", "login", PATHS, False),
        ("test", "staff", [], False),
        ("live", "both", [], True),
    ],
)
def test_the_sandbox_is_in_test_alone(
    tmp_path_factory: pytest.TempPathFactory,
    environment: str,
    serve: str,
    paths: list[str],
    plain: bool,
) -> None:
    shell = service_environment(
        tmp_path_factory.mktemp("var"), 0, ENVIRONMENT=environment, SERVE=serve
    )
    output = manage(shell, "shell", "--no-imports", "-c", SHOWN)
    assert json.loads(output) == {"paths": paths, "plain": plain}
