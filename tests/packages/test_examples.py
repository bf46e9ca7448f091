"""Programs of API teams in other languages, and gateways before them: as their guides show them."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from einvoicing_tokens.gateway import PROXIES, Gateway
from tests.introspection.party import Party
from tests.packages.issuer import AT, INTERMEDIARY, LIST, TAXPAYER, Issuer, new_key
from tests.packages.test_dpop import API, Client
from tests.servers.nginx import nginx_program
from tests.servers.npm import install_locked
from tests.servers.processes import CHECKOUT, free_port, listens, start_process, stop_process
from tests.servers.service import Service

TIN, AGENT = "C6000000006", "C7000000007"
PACKAGE = CHECKOUT / "packages" / "einvoicing_tokens"
EXAMPLES = PACKAGE / "examples"
WITHOUT_THE_PACKAGE = ("node", pytest.param("java", marks=pytest.mark.long))
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
    taxpayer, intermediary = Party(node, TIN), Party(node, AGENT)
    node.manage("register_intermediary", AGENT)
    parties = ("--taxpayer", TIN, "--intermediary", AGENT)
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
    for _ in range(2):  # a node without its database, then none
        time.sleep(2.1)
        assert statuses(api) == [200, 401]
        issuer.is_away = True
    health = httpx.get(f"{api}/health").json()
    assert 4 < health["age_seconds"] < 60
    assert 1700 < health["usable_seconds"] < 1810
    assert issuer.url + LIST in health["failed"]
    del examples.started[example, issuer.url]
    assert statuses(examples.address(example, issuer.url)) == [200, 401], "by what is on disk"


OF_INTERMEDIARY = {
    "X-Taxpayer": str(TAXPAYER),
    "X-Actor": str(INTERMEDIARY),
    "X-Permissions": "documents:submit",
    "X-Scope": "InvoicingAPI",
    "X-Client-Id": "ci_test_1",
}
OF_TAXPAYER = OF_INTERMEDIARY | {"X-Actor": "", "X-Permissions": "*"}
INVENTED = dict.fromkeys(OF_TAXPAYER, "C0000000000")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def asked(gateway: Gateway, headers: Any, method: str = "GET", path: str = "/") -> Any:
    transport = httpx.ASGITransport(gateway)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        return await client.request(method, path, headers=headers)


def ask(gateway: Gateway, headers: Any, **request: str) -> httpx.Response:
    answer: httpx.Response = asyncio.run(asked(gateway, headers, **request))
    return answer


def test_a_valid_token_is_told_in_five_headers_and_all_others_get_the_apis_answer(
    issuer: Issuer,
) -> None:
    gateway, token = Gateway(issuer.verifier()), issuer.token(is_intermediary=True)
    told = ask(gateway, bearer(token))
    assert told.status_code == 200
    assert {name: told.headers[name] for name in OF_TAXPAYER} == OF_INTERMEDIARY
    own = ask(gateway, bearer(issuer.token()))
    assert {name: own.headers[name] for name in OF_TAXPAYER} == OF_TAXPAYER
    for headers, status, error in (
        ({}, 401, "invalid_token"),
        (bearer("x"), 401, "invalid_token"),
        ([*bearer(token).items()] * 2, 401, "invalid_token"),
        (bearer(token) | {"X-Required-Scope": "OtherAPI"}, 403, "insufficient_scope"),
        (bearer(token) | {"X-Required-Permission": "documents:view"}, 403, "insufficient_scope"),
    ):
        refused = ask(gateway, headers)
        assert (refused.status_code, refused.json()["error"]) == (status, error)
        assert refused.json() == json.loads(refused.headers["X-Token-Error"])
        assert refused.headers["WWW-Authenticate"].startswith(f'Bearer error="{error}"')
        assert not OF_TAXPAYER.keys() & {name.title() for name in refused.headers}
    issuer.is_away = True
    away = ask(Gateway(issuer.verifier()), bearer(token))
    assert (away.status_code, away.json()["error"]) == (503, "temporarily_unavailable")
    assert issuer.url not in away.text, "addresses are for the API's operator"


def test_a_caller_can_only_demand_more_of_itself(issuer: Issuer) -> None:
    headers = [
        *bearer(issuer.token(is_intermediary=True)).items(),
        ("X-Required-Permission", "documents:submit"),  # of the client
        ("X-Required-Permission", "documents:view"),  # of the proxy
    ]
    assert ask(Gateway(issuer.verifier()), headers).status_code == 403


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proof_counts_for_the_request_that_the_proxy_names(proxy: str, issuer: Issuer) -> None:
    client = Client(issuer)
    gateway = Gateway(issuer.verifier(address=API), proxy=proxy)
    for path, status in (("/documents?page=2", 200), ("/others", 401)):
        headers = {"Authorization": f"DPoP {client.token}", "DPoP": client.proof(jti=path)}
        # What the other proxies would set comes from the client here.
        for names in filter(None, PROXIES.values()):
            headers |= dict(zip(names, ("POST", "/documents"), strict=True))
        named, request = PROXIES[proxy], {"method": "POST", "path": path}
        if named:
            headers |= dict(zip(named, ("POST", path), strict=True))
            request = {"method": "GET", "path": "/"}
        assert ask(gateway, headers, **request).status_code == status


_MAIN = "daemon off; pid {0}/pid; error_log {0}/log; {1} events {{}} http {{ access_log off; {2} }}"
_ECHOES = {  # APIs that know nothing of OAuth: a program, its file, and what it does
    "php": "<?php header('Content-Type: application/json'); echo json_encode(getallheaders());",
    "node": "require('http').createServer((asked, answer) => answer.setHeader('Content-Type',"
    " 'application/json').end(JSON.stringify(asked.headers))).listen(process.env.PORT)",
}


@dataclass
class Api:
    """The API at its public address; `gateway` is the program that verifies its tokens."""

    url: str
    gateway: Any

    def get(self, **headers: str) -> httpx.Response:
        return httpx.get(f"{self.url}/documents", headers=headers, timeout=20)

    def post(self, **headers: str) -> httpx.Response:
        return httpx.post(f"{self.url}/documents", headers=headers, json={"a": 1}, timeout=20)


@pytest.fixture(params=[("nginx", "php"), ("nginx", "node"), ("envoy", "php")], ids="-".join)
def upstream(request: pytest.FixtureRequest, issuer: Issuer, tmp_path: Path) -> Iterator[Api]:
    issuer.clock.seconds = float(int(time.time() - AT.timestamp()))
    proxied_by, language = request.param
    echo, gateway, public = (free_port() for _ in range(3))
    (tmp_path / "echo").write_text(_ECHOES[language])
    (file,) = (EXAMPLES / "gateway").glob(f"{proxied_by}.*")
    served = file.read_text().replace("listen ", "listen 127.0.0.1:")
    for old, new in (("9000", gateway), ("8081", echo), ("8080", public)):
        served = re.sub(rf"(127.0.0.1:|port_value: ){old}\b", rf"\g<1>{new}", served)
    if proxied_by == "nginx":
        user = "user root root;" if os.geteuid() == 0 else ""
        served = _MAIN.format(tmp_path, user, served)
        proxy = [str(nginx_program()), "-p", str(tmp_path), "-c", file.name]
    else:
        envoy = str(Path(sys.executable).with_name("envoy"))
        proxy = [sys.executable, envoy, "--config-path", str(tmp_path / file.name)]
        proxy += ["--concurrency", "1"]
    (tmp_path / file.name).write_text(served)
    listen = f"127.0.0.1:{gateway}"
    options = ["--issuer", issuer.url, "--audience", "InvoicingAPI", "--listen", listen]
    options += ["--proxy", proxied_by]
    program = [sys.executable, "-B", "-m", "einvoicing_tokens.gateway", *options]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PACKAGE / "src"),
        "PORT": str(echo),
    }
    with ExitStack() as stack:

        def start(command: list[str], port: int) -> Any:
            process = start_process(
                command, tmp_path / "output", lambda: listens(port), env=environment
            )
            stack.callback(stop_process, process, signal.SIGKILL)
            return process

        interpreter = shutil.which(language) or pytest.fail(f"no {language} here")
        where = ["-S", f"127.0.0.1:{echo}"] if language == "php" else []
        start([interpreter, *where, str(tmp_path / "echo")], echo)
        verifies = start(program, gateway)
        start(proxy, public)
        yield Api(f"http://127.0.0.1:{public}", verifies)


@pytest.mark.processes
def test_an_api_reads_for_whom_it_works_and_no_client_can_invent_it(
    upstream: Api, issuer: Issuer
) -> None:
    own, agents = issuer.token(), issuer.token(is_intermediary=True)
    for answer, headers in (
        (upstream.get(**bearer(own), **INVENTED), OF_TAXPAYER),
        (upstream.post(**bearer(own), **INVENTED), OF_TAXPAYER),
        (upstream.post(**bearer(agents), **INVENTED, X_Actor="C0000000000"), OF_INTERMEDIARY),
    ):
        assert answer.status_code == 200, answer.text
        received = {name.title(): value for name, value in answer.json().items()}
        assert {name: received.get(name, "") for name in OF_TAXPAYER} == headers
        assert not [name for name in received if name == "Authorization" or "_" in name]
    for refused, status, error in (
        (upstream.get(**INVENTED), 401, "invalid_token"),
        (upstream.get(**bearer(own[:-4] + "AAAA")), 401, "invalid_token"),
        (upstream.get(**bearer(agents)), 403, "insufficient_scope"),
    ):
        assert (refused.status_code, refused.json()["error"]) == (status, error)
        assert refused.headers.get_list("WWW-Authenticate") == [f'Bearer error="{error}"']
        assert refused.headers["Content-Type"] == "application/json"
    upstream.gateway.kill()
    upstream.gateway.wait()
    away = upstream.get(**bearer(own))
    assert away.status_code == 503
    if away.headers["Server"] != "envoy":  # which has no body for it
        assert away.json()["error"] == "temporarily_unavailable"
        assert away.headers["Retry-After"] == "5"
