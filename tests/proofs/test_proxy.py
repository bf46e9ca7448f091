"""`deploy/container/proxy.sh`: the real nginx with `deploy/nginx.conf` finds nodes by name."""

import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from proofs.containers.composed import service as composed
from tests.conftest import StartService
from tests.live.cluster import new_client
from tests.servers.nginx import CONFIGURATION, nginx_program, write_certificate
from tests.servers.processes import (
    CHECKOUT,
    changed,
    completed,
    free_port,
    listens,
    new_folder,
    start_process,
    stop_process,
    until,
)
from tests.support.erp import PATH

SCRIPT = CHECKOUT / "deploy" / "container" / "proxy.sh"
PUBLIC, STAFF, MTLS = "id.country.test", "staff.country.test", "mtls.country.test"
# Only of a test: a proxy listens on the loopback interface alone.
_ON_LOOPBACK = """#!/bin/sh
sed -i 's/listen \\([0-9]*[; ]\\)/listen 127.0.0.1:\\1/' "$NGINX_DIR/service.conf"
exec "{program}" "$@"
"""


@dataclass
class Proxy:
    folder: Path
    environment: dict[str, str]
    tls: ssl.SSLContext

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return completed(["/bin/sh", SCRIPT, *arguments], env=self.environment)

    def rendered(self) -> str:
        done = self.run("-t")
        assert done.returncode == 0, done.stderr
        assert "[warn]" not in done.stderr
        return (self.folder / "nginx" / "service.conf").read_text()

    @contextmanager
    def running(self, **environment: str) -> Iterator[int]:
        """Its port for HTTPS, while the block runs."""
        self.environment |= environment
        port, command = int(self.environment["HTTPS_PORT"]), ["/bin/sh", str(SCRIPT)]
        log, given = self.folder / "log", self.environment
        process = start_process(command, log, lambda: listens(port), env=given)
        try:
            yield port
        finally:
            stop_process(process, signal.SIGTERM)

    def client(self, host: str) -> httpx.Client:
        url = f"https://127.0.0.1:{self.environment['HTTPS_PORT']}"
        transport = httpx.HTTPTransport(verify=self.tls, local_address="127.0.0.2")
        return httpx.Client(base_url=url, transport=transport, headers={"Host": host}, timeout=10)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    folder = new_folder("proxy")
    tls = write_certificate(folder)
    (folder / "programs").mkdir()
    program = folder / "programs" / "nginx"
    program.write_text(_ON_LOOPBACK.format(program=nginx_program()))
    program.chmod(0o755)
    (folder / "proxy-secret").write_text("n" * 40 + "," + "o" * 40 + "\n")
    (folder / "authorities.pem").write_text((folder / "certificate.pem").read_text())
    given = {
        **composed("nginx")["environment"],
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "NGINX_CONF": str(CONFIGURATION),
        "NGINX_DIR": str(folder / "nginx"),
        "TLS_CERTIFICATE": str(folder / "certificate.pem"),
        "TLS_KEY": str(folder / "certificate.key"),
        "CLIENT_AUTHORITIES": str(folder / "authorities.pem"),
        "PROXY_SECRET_FILE": str(folder / "proxy-secret"),
        "PUBLIC_HOST": PUBLIC,
        "STAFF_HOST": STAFF,
        "HTTP_PORT": str(free_port()),
        "HTTPS_PORT": str(free_port()),
    }
    yield Proxy(folder, given, tls)
    shutil.rmtree(folder)


@pytest.mark.processes
@pytest.mark.parametrize("mtls", ["", MTLS])
def test_what_compose_gives_it_is_a_right_configuration(proxy: Proxy, mtls: str) -> None:
    proxy.environment["MTLS_HOST"] = mtls
    rendered, secret = proxy.rendered(), proxy.folder / "nginx" / "proxy-secret.conf"
    assert secret.exists() == bool(mtls)
    if mtls:
        assert secret.read_text() == f'proxy_set_header X-Proxy-Secret "{"n" * 40}";\n'
        assert secret.stat().st_mode & 0o077 == 0
    assert set(re.findall(r"server_name (\S+);", rendered)) == {PUBLIC, STAFF, mtls} - {""}
    instructions = re.sub(r"#.*", "", rendered)
    assert "example.org" not in instructions
    assert "/var/log" not in instructions
    assert re.findall(r"server (\S+?:\d+)", instructions) == [
        *("login-1:8000", "login-2:8000", "staff:8000"),
    ]


@pytest.mark.processes
@pytest.mark.parametrize(("half", "names"), [("public", {PUBLIC, MTLS}), ("staff", {STAFF})])
def test_a_proxy_of_one_half_has_no_server_of_the_other(
    proxy: Proxy, half: str, names: set[str]
) -> None:
    proxy.environment |= {"ONLY": half, "MTLS_HOST": MTLS}
    assert set(re.findall(r"server_name (\S+);", proxy.rendered())) == names


@pytest.mark.processes
def test_a_renewed_certificate_is_used_without_a_restart(proxy: Proxy) -> None:
    with proxy.running(WATCH_SECONDS="0.1", RESOLVER="127.0.0.1") as https:
        former = ssl.get_server_certificate(("127.0.0.1", https))
        time.sleep(1.1)  # nginx reads a file again only if its date, in seconds, has changed
        write_certificate(proxy.folder)
        until(lambda: ssl.get_server_certificate(("127.0.0.1", https)) != former)


@pytest.mark.processes
def test_the_nginx_of_a_machine_gets_its_file_by_settings_alone(proxy: Proxy) -> None:
    site = proxy.folder / "site.conf"
    tested = proxy.folder / "tested.conf"  # without the folder of logs that Debian's nginx has
    (proxy.folder / "main.conf").write_text(f"events {{}} http {{ include {tested}; }}")
    (proxy.folder / "programs" / "nginx").write_text(
        f"#!/bin/sh\nsed 's|/var/log/nginx|{proxy.folder}|' {site} >{tested}\n"
        f'exec "{nginx_program()}" -p "{proxy.folder}" -e stderr -c main.conf "$@"\n'
    )
    (proxy.folder / "programs" / "systemctl").write_text("#!/bin/sh\necho $@\n")
    (proxy.folder / "programs" / "systemctl").chmod(0o755)
    given = changed(
        (CHECKOUT / "deploy" / "proxy.env").read_text(),
        ("/etc/nginx/conf.d/identity.conf", str(site)),
        (r"/etc/ssl/id\.example\.org", f"{proxy.folder}/certificate"),
        ("STAFF_NETWORKS='10.0.0.0/8'", "STAFF_NETWORKS='10.1.0.0/16 10.2.0.0/16'"),
    )
    (proxy.folder / "proxy.env").write_text(given)
    names = ("PATH", "IDENTITY_ENV")
    proxy.environment["IDENTITY_ENV"] = str(proxy.folder / "identity.env")
    proxy.environment = {name: proxy.environment[name] for name in names}
    done = proxy.run("site")
    assert (done.returncode, done.stdout) == (0, "reload nginx\n"), done.stderr
    made = site.read_text()
    assert all(f"allow 10.{number}.0.0/16;" in made for number in (1, 2))
    nodes = re.findall(r"server (\S+?:\d+)", re.sub(r"#.*", "", made))
    assert nodes == [f"127.0.0.1:{port}" for port in (8000, 8001, 8002)]
    assert "listen 443 ssl;" in made
    assert "/var/log/nginx/login.log" in made
    (proxy.folder / "proxy.env").write_text(f"{given}STAFF_NETWORKS=nowhere\n")
    assert proxy.run("site").returncode == 1
    assert site.read_text() == made
    assert {path.name for path in proxy.folder.glob("site*")} == {"site.conf"}


@pytest.mark.processes
def test_a_configuration_that_has_changed_is_noticed(proxy: Proxy) -> None:
    changed = proxy.folder / "changed.conf"
    changed.write_text(CONFIGURATION.read_text().replace("allow 10.0.0.0/8;", "allow 10.0.0.0/9;"))
    proxy.rendered()
    proxy.environment["NGINX_CONF"] = str(changed)
    done = proxy.run("-t")
    assert done.returncode == 1
    assert "has no line with allow" in done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("name", ["PUBLIC_HOST", "LOGIN_NODES", "STAFF_NETWORKS"])
def test_what_is_missing_is_one_clear_line(proxy: Proxy, name: str) -> None:
    del proxy.environment[name]
    done = proxy.run("-t")
    assert done.returncode != 0
    assert name in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_login_reaches_a_node_that_is_found_by_its_name(
    proxy: Proxy, service: StartService
) -> None:
    node = service(
        SERVE="login",
        AUTH_URL=f"https://{PUBLIC}",
        ENVIRONMENT="test",
        TRUSTED_PROXIES="127.0.0.1",
        ALLOWED_HOSTS=PUBLIC,
    )
    erp = new_client(node)
    port = node.url.rpartition(":")[2]
    gone = free_port()
    proxy.environment |= {
        "LOGIN_NODES": f"login-1.test:{gone} login-2.test:{port}",
        "STAFF_NODES": f"staff.test:{gone}",
        "STAFF_NETWORKS": "127.0.0.3 10.0.0.0/8",
    }
    with name_server() as address, proxy.running(RESOLVER=address):
        with proxy.client(PUBLIC) as client:
            until(lambda: client.get("/health/live").status_code == 200)  # it looks up names
            answers = [client.post(PATH, data=erp.form) for _ in range(6)]
            assert client.get("/metrics").status_code == 404
        with proxy.client(STAFF) as client:
            assert client.get("/admin/").status_code == 403
    # Also those that nginx sent to the node that is gone first.
    assert [answer.status_code for answer in answers] == [200] * 6, answers[0].text


_TYPE_A = 1
_ADDRESS = socket.inet_aton("127.0.0.1")


@contextmanager
def name_server() -> Iterator[str]:
    """Its address, as nginx writes it, while the block runs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=[server], daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.sendto(b"", server.getsockname())  # ends it
        thread.join(5)


def _serve(server: socket.socket) -> None:
    while True:
        query, sender = server.recvfrom(512)
        if not query:
            return
        server.sendto(_answer(query), sender)


def _answer(query: bytes) -> bytes:
    """RFC 1035, section 4: the question again, and an address if one was asked for."""
    end = query.index(b"\0", 12) + 5
    (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
    answers = int(kind == _TYPE_A)
    header = query[:2] + struct.pack("!5H", 0x8180, 1, answers, 0, 0)
    record = struct.pack("!HHHIH", 0xC00C, _TYPE_A, 1, 5, len(_ADDRESS)) + _ADDRESS
    return header + query[12:end] + record * answers
