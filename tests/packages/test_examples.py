"""The examples of docs/api-teams.md as an API team would run them, with tokens of this service."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.introspection.party import Party
from tests.packages.issuer import AT, LIST, Issuer, new_key
from tests.servers.npm import install_locked
from tests.servers.processes import CHECKOUT, free_port, start_process, stop_process
from tests.servers.service import Service

TIN, INTERMEDIARY = "C6000000006", "C7000000007"
PACKAGE = CHECKOUT / "packages" / "einvoicing_tokens"
EXAMPLES = PACKAGE / "examples"
WITHOUT_THE_PACKAGE = ("node", "java")
JACKSON = ":".join(
    f"/usr/share/java/jackson-{name}.jar" for name in ("databind", "core", "annotations")
)


@dataclass(frozen=True)
class Tokens:
    """Of a taxpayer for itself, and of an intermediary that may only submit for it."""

    own: str
    on_behalf: str


@pytest.fixture(scope="module")
def tokens(node: Service) -> Tokens:
    taxpayer, intermediary = Party(node, TIN), Party(node, INTERMEDIARY)
    node.manage("register_intermediary", INTERMEDIARY)
    parties = ("--taxpayer", TIN, "--intermediary", INTERMEDIARY)
    node.manage("grant_permission", *parties, "--permission", "documents:submit")
    return Tokens(taxpayer.token(), intermediary.token(onbehalfof=TIN))


@dataclass
class Examples:
    """Starts an example for an issuer when it is first needed; all stop together."""

    folder: Path
    started: dict[tuple[str, str], str] = field(default_factory=dict)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def address(self, example: str, issuer: str) -> str:
        if (example, issuer) not in self.started:
            self.started[example, issuer] = self._start(example, issuer)
        return self.started[example, issuer]

    def _start(self, example: str, issuer: str) -> str:
        port = free_port()
        url, log = f"http://127.0.0.1:{port}", self.folder / f"{example}-{port}.log"
        command, folder = self._command(example, port)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGE / "src"),
            "AUTH_URL": issuer,
            "PORT": str(port),
            "FOLDER": str(self.folder),
        }

        def answers() -> bool:
            try:
                return httpx.get(f"{url}/documents").status_code == 401
            except httpx.TransportError:
                return False

        process = start_process(command, log, answers, cwd=folder, env=environment)
        self.stack.callback(stop_process, process, signal.SIGKILL)
        return url

    def _command(self, example: str, port: int) -> tuple[list[str], Path]:
        """As the first lines of the example say, and where."""
        python = [sys.executable, "-B"]
        if example == "flask":
            return [*python, *f"-m flask --app flask_api run --port {port}".split()], EXAMPLES
        if example == "fastapi":
            return [*python, *f"-m uvicorn fastapi_api:app --port {port}".split()], EXAMPLES
        if example == "django":
            return [*python, *f"django_api.py runserver --noreload {port}".split()], EXAMPLES
        if example == "java":
            return ["java", "-cp", JACKSON, "ProtectedApi.java"], EXAMPLES / "java"
        return ["node", "api.js"], self._installed()

    def _installed(self) -> Path:
        """The Node example with its locked packages."""
        folder = self.folder / "node"
        return folder if folder.exists() else install_locked(EXAMPLES / "node", folder)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examples]:
    made = Examples(tmp_path_factory.mktemp("examples"))
    with made.stack:
        yield made


@pytest.fixture(params=["flask", "fastapi", "django", *WITHOUT_THE_PACKAGE])
def api(request: pytest.FixtureRequest, examples: Examples, node: Service) -> str:
    """The address of an example that runs, for tokens of the running service."""
    return examples.address(request.param, node.url)


def call(api: str, method: str, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.request(method, f"{api}/documents", headers=headers, timeout=20)


def test_an_example_lets_each_token_do_what_it_may(api: str, tokens: Tokens) -> None:
    header, payload, signature = tokens.own.split(".")
    read, submitted = (call(api, method, tokens.own) for method in ("GET", "POST"))
    assert (read.status_code, read.json()) == (200, {"taxpayer": TIN, "actor": None})
    assert (submitted.status_code, submitted.json()) == (201, {"taxpayer": TIN})
    submitted = call(api, "POST", tokens.on_behalf)
    assert (submitted.status_code, submitted.json()) == (201, {"taxpayer": TIN})
    refused = call(api, "GET", tokens.on_behalf)
    assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")
    assert refused.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope"'
    for token in ("", "x", f"{header}.{payload}.{signature[:-4]}AAAA", f"{header}.{payload}."):
        answer = call(api, "GET", token)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token"), token
        assert set(answer.json()) == {"error", "error_description"}
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        assert answer.headers["Content-Type"] == "application/json"
    twice = [("Authorization", f"Bearer {tokens.own}")] * 2
    assert httpx.get(f"{api}/documents", headers=twice).status_code == 401


by_itself = pytest.mark.parametrize("example", WITHOUT_THE_PACKAGE)


@pytest.fixture
def issuer_of_today(issuer: Issuer) -> Issuer:
    """They read the clock of the machine."""
    issuer.clock.seconds = float(int(time.time() - AT.timestamp()))
    return issuer


@pytest.mark.slow
@by_itself
def test_an_example_refuses_what_is_not_meant_for_it(
    examples: Examples, issuer_of_today: Issuer, example: str
) -> None:
    issuer = issuer_of_today
    issuer.keys = [new_key(alg) for alg in ("RS256", "PS256", "ES256")]
    api = examples.address(example, issuer.url)
    issuer.end(5)
    now = int(issuer.clock.wall())
    other_list = {"idx": 4, "uri": f"{issuer.url}.example.org/status/1"}
    for token, status in (
        *((issuer.token(key=key), 200) for key in issuer.keys),
        (issuer.token(index=4), 200),
        (issuer.token(index=5), 401),
        (issuer.token(status={"status_list": other_list}), 401),
        (issuer.token(index=2**20), 401),
        (issuer.token(aud="Other"), 401),
        (issuer.token(iss="https://other.example.org"), 401),
        (issuer.token(typ="JWT"), 401),
        (issuer.status_list().decode(), 401),
        (issuer.token(key=new_key()), 401),
        (issuer.token(exp=now - 60), 401),
        (issuer.token(taxpayer=None), 401),
        (issuer.token(cnf={"x5t#S256": "x"}), 401),
        (issuer.token(act={"sub": "D1"}), 401),
        (issuer.token(is_intermediary=True), 403),
        (issuer.token(is_intermediary=True, permissions=["documents:view"]), 200),
        (issuer.token(scope="Other"), 403),
    ):
        assert call(api, "GET", token).status_code == status, issuer.requests


@pytest.mark.slow
@by_itself
def test_an_example_starts_and_goes_on_while_the_service_is_away(
    examples: Examples, issuer_of_today: Issuer, example: str
) -> None:
    issuer = issuer_of_today
    issuer.end(5)
    good, ended = issuer.token(index=4), issuer.token(index=5)

    def statuses(api: str) -> list[int]:
        return [call(api, "GET", token).status_code for token in (good, ended)]

    issuer.is_away = True
    api = examples.address(example, issuer.url)
    assert statuses(api) == [503, 503]
    issuer.is_away = False
    at = int(issuer.clock.wall())
    issuer.answers[LIST] = issuer.status_list(iat=at, exp=at + 1800, ttl=1)
    time.sleep(1.1)  # it has just tried
    assert statuses(api) == [200, 401]
    issuer.ended = bytearray(len(issuer.ended))
    issuer.answers[LIST] = issuer.status_list(iat=at - 9, exp=at + 1791, ttl=1)
    for _ in range(3):  # a node without its database, then none
        time.sleep(2.1)
        assert statuses(api) == [200, 401]
        issuer.is_away = True
    health = httpx.get(f"{api}/health").json()
    assert 4 < health["age_seconds"] < 60
    assert 1700 < health["usable_seconds"] < 1810
    assert issuer.url + LIST in health["failed"]
    del examples.started[example, issuer.url]
    assert statuses(examples.address(example, issuer.url)) == [200, 401], "by what is on disk"
