"""The gateway: by ASGI, and behind the real nginx and Envoy for an API in PHP without OAuth."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from einvoicing_tokens.gateway import PROXIES, Gateway
from tests.packages.issuer import AT, INTERMEDIARY, TAXPAYER, Issuer
from tests.packages.test_dpop import API, Client
from tests.packages.test_examples import EXAMPLES, PACKAGE
from tests.servers.nginx import nginx_program
from tests.servers.processes import free_port, start_process, stop_process

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
        proof = client.proof(jti=path)
        headers = {"Authorization": f"DPoP {client.token}", "DPoP": proof}
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
def api(request: pytest.FixtureRequest, issuer: Issuer, tmp_path: Path) -> Iterator[Api]:
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
                command, tmp_path / "output", lambda: _listens(port), env=environment
            )
            stack.callback(stop_process, process, signal.SIGKILL)
            return process

        interpreter = shutil.which(language) or pytest.fail(f"no {language} here")
        listens = ["-S", f"127.0.0.1:{echo}"] if language == "php" else []
        start([interpreter, *listens, str(tmp_path / "echo")], echo)
        verifies = start(program, gateway)
        start(proxy, public)
        yield Api(f"http://127.0.0.1:{public}", verifies)


def _listens(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/")
    except httpx.TransportError:
        return False
    return True


@pytest.mark.processes
def test_an_api_reads_for_whom_it_works_and_no_client_can_invent_it(
    api: Api, issuer: Issuer
) -> None:
    own, agents = issuer.token(), issuer.token(is_intermediary=True)
    for answer, headers in (
        (api.get(**bearer(own), **INVENTED), OF_TAXPAYER),
        (api.post(**bearer(own), **INVENTED), OF_TAXPAYER),
        (api.post(**bearer(agents), **INVENTED, X_Actor="C0000000000"), OF_INTERMEDIARY),
    ):
        assert answer.status_code == 200, answer.text
        received = {name.title(): value for name, value in answer.json().items()}
        assert {name: received.get(name, "") for name in OF_TAXPAYER} == headers
        assert not [name for name in received if name == "Authorization" or "_" in name]
    for refused, status, error in (
        (api.get(**INVENTED), 401, "invalid_token"),
        (api.get(**bearer(own[:-4] + "AAAA")), 401, "invalid_token"),
        (api.get(**bearer(agents)), 403, "insufficient_scope"),
    ):
        assert (refused.status_code, refused.json()["error"]) == (status, error)
        assert refused.headers.get_list("WWW-Authenticate") == [f'Bearer error="{error}"']
        assert refused.headers["Content-Type"] == "application/json"
    api.gateway.kill()
    api.gateway.wait()
    away = api.get(**bearer(own))
    assert away.status_code == 503
    if away.headers["Server"] != "envoy":  # which has no body for it
        assert away.json()["error"] == "temporarily_unavailable"
        assert away.headers["Retry-After"] == "5"
