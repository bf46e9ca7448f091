"""The client check as its users run it: one file, by HTTP, on a machine with nothing but Python."""

import ast
import fcntl
import json
import os
import pty
import re
import ssl
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import RFC_4122, UUID

import httpx
import pytest

from clientcheck import clientcheck
from clientcheck.clientcheck import (
    CHECKS,
    CLIENT_ID,
    FAIL,
    FORM,
    NEW_SECRET,
    NOT_SEEN,
    NOTE,
    OWN,
    PASS,
    REPRESENTED,
    SECRET,
    Authority,
    Doctor,
    Fault,
    Finding,
    Login,
    Refused,
    Request,
    Server,
    Token,
    as_html,
    as_json,
    as_text,
    check,
    new_reference,
    read_on_behalf_of,
)
from tests.clientcheck import sample_erp as samples
from tests.clientcheck.sample_erp import GoodErp
from tests.live.cluster import new_client
from tests.servers.processes import CHECKOUT, completed
from tests.servers.service import Service
from tests.support.erp import Erp
from tests.webhooks.receiver import write_certificate

FILE = CHECKOUT / "clientcheck" / "clientcheck.py"
LOGIN = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": SECRET}


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(port: int, method: str, path: str, body: str = "", **headers: str) -> httpx.Response:
    url = f"http://127.0.0.1:{port}{path}"
    return httpx.request(method, url, content=body, headers=headers, timeout=10)


def log_in(port: int, **headers: str) -> httpx.Response:
    return ask(port, "POST", "/connect/token", urlencode(LOGIN), **{"Content-Type": FORM} | headers)


def test_an_erp_system_logs_in_calls_an_api_and_reads_the_report() -> None:
    authority = Authority()
    with serving(Server(0, authority)) as port:
        answer = log_in(port, onbehalfof=REPRESENTED[1])
        assert (answer.status_code, answer.reason_phrase) == (200, "OK")
        assert answer.headers["X-Represented-Taxpayer"] == REPRESENTED[1]
        assert answer.headers["Date"]
        made = UUID(answer.headers["correlationId"]).int >> 80
        assert abs(made / 1000 - time.time()) < 60
        references = [UUID(new_reference(time.time())) for _ in range(99)]
        assert {(one.version, one.variant) for one in references} == {(7, RFC_4122)}
        twice = f"{urlencode(LOGIN)}&scope=&scope=&client_id=x"
        refused = ask(port, "POST", "/connect/token", twice, **{"Content-Type": FORM})
        assert "the parameter client_id is sent more than once" in refused.text
        token = answer.json()["access_token"]
        for _ in range(2):
            done = ask(port, "GET", "/api/v1/documents", Authorization=f"Bearer {token}")
            assert done.status_code == 200
        wrong = ask(port, "GET", "/api/v1/documents", Authorization="Bearer x")
        assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (
            401,
            'Bearer error="invalid_token", error_description="The access token has expired or is'
            ' not valid. Log in again."',
        )
        assert [call.status for call in authority.calls] == [200, 200, 401]
        report = ask(port, "GET", "/report.json").json()
        states = {found["name"]: found["state"] for found in report["checks"]}
        assert states["a token is used for many calls"] == PASS
        page = ask(port, "GET", "/")
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "a token is used for many calls" in page.text


def test_a_slow_answer_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clientcheck, "SLOW", 0.3)
    with serving(Server(0, Authority(plan={1: Fault.SLOW}))) as port:
        started = time.monotonic()
        assert log_in(port).status_code == 200
        assert time.monotonic() - started >= 0.3


def test_an_empty_header_and_a_second_one_are_two_mistakes() -> None:
    for values, detail in (
        ((" ", OWN), "it is empty"),
        ((OWN, ""), "it is sent twice or holds a list"),
    ):
        headers = [("onbehalfof", value) for value in values]
        with pytest.raises(Refused) as refused:
            read_on_behalf_of(Request("POST", "/connect/token", "", headers, b"", 0.0))
        assert refused.value.detail == detail


def test_it_listens_on_this_machine_alone() -> None:
    server = Server(0, Authority())
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()


# --- The file -------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Without anything of ours in its path: `-I` and `-S` leave out whatever is installed."""
    return completed(
        [sys.executable, "-I", "-S", "-W", "error", str(FILE), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # without a terminal
        env={"PATH": os.environ["PATH"], **environment},
        timeout=60,
    )


@pytest.mark.gate
@pytest.mark.processes
def test_it_runs_alone_and_writes_its_report(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *("--port", "0", "--minutes", "0.001", "--json", "report.json", "--html", "report.html"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "NOT SEEN  a token is used for many calls" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["counts"][FAIL] == 0
    assert "<h1>Client check</h1>" in (tmp_path / "report.html").read_text()
    doctor = "doctor", "--url", "http://127.0.0.1:1"
    done = run(tmp_path, *doctor)
    assert (done.returncode, done.stderr) == (1, "")
    done = run(tmp_path, *doctor, "--client-id", CLIENT_ID)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Set CLIENT_SECRET: here is no terminal")


def test_sigterm_writes_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(FILE), "--port", "0", "--json", str(report)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "(Ctrl-C ends" not in running.stdout.readline():
            pass
        time.sleep(0.5)
        running.terminate()
        running.stdout.read()
        assert running.wait(20) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["counts"]["fail"] == 0


def test_it_needs_nothing_newer_than_python_3_9() -> None:
    text = FILE.read_text(encoding="utf-8")
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text, feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names - {"tomllib"}
    assert not {word for word in ("datetime.UTC", "StrEnum", "strict=", "slots=") if word in text}


# --- doctor ---------------------------------------------------------------------------------------


def states_of(findings: list[Finding]) -> dict[str, str]:
    return {finding.name: finding.state for finding in findings}


@pytest.fixture
def erp_of_node(node: Service, db: None) -> Erp:
    return new_client(node, tin="C7770000001")


@pytest.mark.gate
@pytest.mark.processes
def test_doctor_examines_the_running_service(
    node: Service, erp_of_node: Erp, tmp_path: Path
) -> None:
    done = run(
        tmp_path,
        *("--json", "report.json", "doctor", "--url", node.url),
        *("--client-id", erp_of_node.client_id),
        CLIENT_SECRET=erp_of_node.client_secret,
    )
    report = (tmp_path / "report.json").read_text()
    checks = {found["name"]: found for found in json.loads(report)["checks"]}
    assert done.returncode == 0, done.stdout + done.stderr
    passed = ("dns", "metadata", "clock", "login", "onbehalfof", "secret", "address")
    states = {name: check["state"] for name, check in checks.items()}
    assert states == dict.fromkeys(passed, PASS) | {"tls": NOTE}
    assert checks["dns"]["seen"] == "127.0.0.1 is 127.0.0.1."
    assert "C7770000001" in checks["onbehalfof"]["seen"]
    assert "in 364 days" in checks["secret"]["seen"]
    assert "127.0.0.1" in checks["address"]["seen"]
    assert erp_of_node.client_secret not in report + done.stdout + done.stderr
    assert "eyJ" not in report + done.stdout


@pytest.mark.gate
@pytest.mark.processes
def test_doctor_shows_why_a_login_is_refused_and_names_another_issuer(
    node: Service, erp_of_node: Erp
) -> None:
    erp = erp_of_node
    findings = Doctor(node.url, erp.client_id, erp.client_secret, "C1234567890").examine()
    assert states_of(findings)["login"] == FAIL
    assert "not registered as an intermediary" in findings[-1].seen
    assert "The reference is " in findings[-1].advice
    states = states_of(Doctor(node.url.replace("127.0.0.1", "localhost"), "", "", "").examine())
    assert (states["metadata"], states["login"]) == (FAIL, NOTE)


def test_a_secret_that_is_typed_is_not_shown(tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-I", str(FILE), "doctor", "--url", "http://127.0.0.1:9"],
        env={"PATH": os.environ["PATH"], "CLIENT_ID": CLIENT_ID},
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
    )
    os.close(other_end)
    shown = b""
    with process, suppress(OSError):  # the end of the program
        while part := os.read(terminal, 1024):
            shown += part
            if shown.endswith(b"(not shown): "):
                os.write(terminal, f"{SECRET}\n".encode())
    os.close(terminal)
    assert b"client_secret (not shown): " in shown
    assert b"FAIL" in shown
    assert SECRET.encode() not in shown


class Stub(BaseHTTPRequestHandler):
    """A service whose proxy loses onbehalfof, with another clock, and a secret that ends soon."""

    issuer: ClassVar[str] = ""  # empty: its own address
    refusal: ClassVar[str] = ""
    seconds: ClassVar[float] = -600.0  # by which its clock is ahead
    received: ClassVar[list[bytes]] = []

    def do_GET(self) -> None:
        self.answer({"issuer": self.issuer or f"http://{self.headers['Host']}"}, {})

    def do_POST(self) -> None:
        time.sleep(0.02)
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {
            "X-Represented-Taxpayer": "C9990000003",
            "X-Client-Secret-Expires-At": (datetime.now(UTC) + timedelta(days=3)).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
        }
        body = {"error_description": self.refusal} if self.refusal else {"access_token": "x"}
        self.answer(body, headers)

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        self.send_response_only(400 if "error_description" in body else 200)
        moment = datetime.now(UTC) + timedelta(seconds=self.seconds)
        self.send_header("Date", moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        pass


def examined_by(stub: type[Stub]) -> list[Finding]:
    stub.received = []
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), stub)) as port:
        return Doctor(f"http://127.0.0.1:{port}", CLIENT_ID, SECRET, REPRESENTED[0]).examine()


def test_doctor_sends_no_secret_to_another_issuer() -> None:
    class Elsewhere(Stub):
        issuer = "http://elsewhere"

        def do_GET(self) -> None:
            time.sleep(0.02)
            super().do_GET()

    findings = {finding.name: finding for finding in examined_by(Elsewhere)}
    assert (findings["metadata"].state, findings["login"].state) == (FAIL, NOTE)
    seen = r"Status 200 in (\d+) ms; the issuer is http://elsewhere\."
    took = re.fullmatch(seen, findings["metadata"].seen)
    assert took is not None
    assert int(took[1]) >= 20
    assert Elsewhere.received == []


def test_doctor_sends_no_secret_without_tls_to_another_machine() -> None:
    doctor = Doctor("http://id.example.org", CLIENT_ID, SECRET, "")
    doctor._metadata_is_right = True
    doctor._login()
    assert states_of(doctor.findings) == {"login": NOTE}


def test_what_a_service_answers_reaches_no_terminal_as_a_control_sequence() -> None:
    class Hostile(Stub):
        refusal = f"\x1b]0;gone\x07 \x9b2J \u202e wrong: {SECRET}"

    report = as_text(examined_by(Hostile))
    assert "wrong: [hidden]" in report
    assert all(line.isprintable() for line in report.split("\n"))
    assert len(Hostile.received) == 1
    Hostile.refusal = "x" * 100_000
    assert len(as_text(examined_by(Hostile))) < 5_000


MEGABYTE = b"a" * 2**20
ENDLESS = 300  # pieces: more than any buffer holds, and an end for a program that reads them all


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n{", MEGABYTE, id="a long body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
            MEGABYTE,
            id="a long piece of a body",
        ),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, id="100 Continue"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b"[" * 2**20, id="nested"),
    ],
)
def test_an_answer_without_an_end_ends_the_doctor_and_not_its_machine(
    begin: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Stub):
        pieces: ClassVar[int] = 0

        def do_GET(self) -> None:
            with suppress(OSError):
                self.wfile.write(begin)
                for _ in range(ENDLESS):
                    self.wfile.write(piece)
                    Endless.pieces += 1

    monkeypatch.setattr(clientcheck, "ANSWER_SECONDS", 0.3)
    assert states_of(examined_by(Endless))["metadata"] == FAIL
    assert Endless.pieces < ENDLESS
    assert Endless.received == []


def test_doctor_finds_a_lost_header_and_a_secret_that_ends() -> None:
    findings = examined_by(Stub)
    (login,) = (finding.seen for finding in findings if finding.name == "login")
    took = re.match(r"Status 200 OK in (\d+) ms\.", login)
    assert took is not None
    assert int(took[1]) >= 20
    failed = {finding.name: finding for finding in findings if finding.state == FAIL}
    assert set(failed) == {"clock", "onbehalfof", "secret"}
    assert all(finding.advice for finding in failed.values())
    assert "in 2 days" in failed["secret"].seen
    assert failed["onbehalfof"].seen == f"The token is for C9990000003, not for {REPRESENTED[0]}."


@pytest.mark.parametrize(
    ("seconds", "state", "says"),
    [
        *((-600, FAIL, " seconds ahead"), (-8, FAIL, " seconds ahead")),
        *((600, FAIL, " seconds behind"), (8, FAIL, " seconds behind"), (0, PASS, "")),
    ],
)
def test_doctor_finds_a_wrong_clock(seconds: float, state: str, says: str) -> None:
    stub = type("Stub", (Stub,), {"seconds": seconds})
    (clock,) = (finding for finding in examined_by(stub) if finding.name == "clock")
    assert clock.state == state
    assert says in clock.seen
    assert abs(float(clock.seen.split()[3]) - abs(seconds)) <= 3


@contextmanager
def tls_server(file: Path) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    server.handle_error = lambda *_args: None  # type: ignore[method-assign]
    with serving(server) as port:
        yield port


def test_doctor_checks_the_chain_and_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = (write_certificate(tmp_path, name, days=9) for name in ("localhost", "other"))
    with tls_server(right) as port:
        unknown = Doctor(f"https://localhost:{port}", "", "", "").examine()
        assert states_of(unknown)["tls"] == FAIL
        monkeypatch.setenv("SSL_CERT_FILE", str(right))
        known = Doctor(f"https://localhost:{port}", "", "", "").examine()
        assert states_of(known)["tls"] == PASS
        assert "in 9 days" in known[1].seen
    monkeypatch.setenv("SSL_CERT_FILE", str(wrong))
    with tls_server(wrong) as port:
        named = Doctor(f"https://localhost:{port}", "", "", "").examine()
        assert states_of(named)["tls"] == FAIL
        assert "localhost" in named[1].seen


@cache
def findings_of(erp: type[GoodErp]) -> list[Finding]:
    sample = erp(Authority())
    sample.work(1800.0)  # half an hour
    return check(sample.authority, "\n".join(sample.log))


# What each sample of an ERP system is shown: its name, the check, what was seen, the advice.
SEEN = (Path(__file__).parent / "seen.txt").read_text().splitlines()


def test_a_good_client_passes_every_check() -> None:
    findings = findings_of(GoodErp)
    assert [f for f in findings if f.state != PASS or f.advice] == []
    assert [f"GoodErp: {f.name}: {f.seen}" for f in findings] == SEEN[: len(CHECKS) + 2]


FAULTS = [
    (samples.LogsInForEachCall, "a token is used for many calls"),
    (samples.OneTokenForAll, "each call has the token of its taxpayer"),
    (samples.ForgetsOnBehalfOf, "each call has the token of its taxpayer"),
    (samples.StaleOnBehalfOf, "each call has the token of its taxpayer"),
    (samples.MisspellsOnBehalfOf, "the header onbehalfof is right"),
    (samples.RenewsTooLate, "logs in again before the token expires"),
    (samples.RenewsAtTheSameMoment, "renews at another moment each time"),
    (samples.WaitsForTheLogin, "keeps its token while the service is away"),
    (samples.IgnoresA401, "logs in again after a 401"),
    (samples.IgnoresRetryAfter, "waits as long as Retry-After says"),
    (samples.NeverWaitsLonger, "waits longer after each 503"),
    (samples.HammersAfterA503, "waits longer after each 503"),
    (samples.HasNoRandomPart, "its pauses have a random part"),
    (samples.TrustsTheClockOfTheToken, "does not trust the clock of the token"),
    (samples.IsImpatient, "waits for a slow answer"),
    (samples.FloodsAfterACut, "tries again after a cut connection"),
    (samples.RepeatsWhatWasRefused, "stops after a refusal that only people can solve"),
    (samples.SecretInTheUrl, "no secret in a URL"),
    (samples.SendsJson, "the request has the right form"),
    (samples.LogsItsSecret, "logs no secret and no token"),
    (samples.ThrowsTheErrorAway, "logs the reference of a refusal"),
]
# What follows from the fault, beside the fault itself.
ALSO = {
    samples.LogsInForEachCall: {
        *("does not trust the clock of the token", "logs in again after a 401"),
        "keeps its token while the service is away",
    },
    samples.HasNoRandomPart: {"keeps its token while the service is away"},
    samples.SecretInTheUrl: {"the request has the right form"},
    # Three taxpayers log in as one: their logins look like those of one.
    samples.ForgetsOnBehalfOf: {"a token is used for many calls", "waits longer after each 503"},
    samples.StaleOnBehalfOf: {"waits longer after each 503"},
    samples.FloodsAfterACut: {"keeps its token while the service is away"},
}


@pytest.mark.parametrize(("erp", "name"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_is_found_and_nothing_else_is_called_one(erp: type[GoodErp], name: str) -> None:
    findings = findings_of(erp)  # type: ignore[arg-type]  # a class can be hashed
    failed = {finding.name: finding for finding in findings if finding.state == FAIL}
    assert f"{erp.__name__}: {name}: {failed[name].seen} {failed[name].advice}" in SEEN
    assert failed.keys() - {name} <= ALSO.get(erp, set())
    text = json.dumps(as_json(findings))
    assert not any(hidden in text for hidden in (SECRET, NEW_SECRET, "eyJ"))


def test_a_report_says_the_same_in_every_form() -> None:
    findings = list(findings_of(samples.IgnoresRetryAfter))
    data = as_json(findings)
    assert data["counts"][FAIL] == 1
    assert [check["name"] for check in data["checks"]] == [f.name for f in findings]
    for text in (as_text(findings), as_html(findings)):
        assert all(f.name in text and f.seen in text for f in findings)
    assert as_text(findings).startswith("FAIL      waits as long as Retry-After says")
    hostile = as_html([Finding(*["<script>alert('1')</script>"] * 4)])
    assert "<script" not in hostile
    assert hostile.count("&lt;script&gt;") == 4


def test_full_jitter_is_no_fault_and_pauses_that_stay_alike_are() -> None:
    for pauses, passes in (([9.1, 5.2, 14.0], True), ([5.1, 7.9], True), ([5.0, 5.1, 5.2], False)):
        authority, at = Authority(), 0.0
        for pause in (*pauses, 0.0):
            authority.logins.append(Login(at, OWN, fault=Fault.DOWN if pause else ""))
            at += pause
        states = states_of(check(authority))
        assert (states["waits longer after each 503"] == PASS) is passes, pauses


def test_most_logins_have_to_come_early_to_be_a_fault() -> None:
    for moments, fails in (((0, 60, 70, 75, 140), False), ((0, 60, 70, 75, 80, 145), True)):
        authority = Authority()
        for at in moments:
            token = Token("t", OWN, at, at + 100)
            authority.logins.append(Login(at, OWN, token=token))
        states = states_of(check(authority))
        assert (states["a token is used for many calls"] == FAIL) is fails
        assert list(states.values()).count(NOT_SEEN) > 2  # among them what only a log shows
        assert len(states) == len(CHECKS) + 2


def test_a_third_login_within_a_second_after_a_cut_is_a_fault() -> None:
    for count, fails in ((2, False), (3, True)):
        authority = Authority()
        authority.logins += [Login(9.0, OWN, fault=Fault.CUT), *[Login(9.5, OWN)] * count]
        states = states_of(check(authority))
        assert (states["tries again after a cut connection"] == FAIL) is fails


@pytest.mark.parametrize("secret", [SECRET, NEW_SECRET])
def test_each_secret_is_found_in_a_log(secret: str) -> None:
    assert check(Authority(), f"sent {secret}")[-1].state == FAIL
