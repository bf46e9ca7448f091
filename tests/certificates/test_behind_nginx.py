"""Real clients with real certificates, the real nginx with `deploy/nginx.conf`, and forgers."""

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import requests
from django.test import override_settings

from tests.certificates.certificate_erp import SUBJECT, nginx, rfc9440
from tests.live.cluster import TIN, Cluster, assert_proxy_answer
from tests.servers.certificates import Authority, IssuedCertificate
from tests.servers.nginx import HOST, MTLS_NAME
from tests.servers.wire import read_to_end
from tests.support.erp import FORM, PATH

pytestmark = [pytest.mark.processes, pytest.mark.gate]
DAY = timedelta(days=1)
Files = tuple[str, str]


@dataclass
class Party:
    """An ERP system with a certificate of the authority that the proxy accepts."""

    cluster: Cluster
    folder: Path
    client_id: str
    issued: IssuedCertificate

    @property
    def form(self) -> dict[str, str]:
        return {"grant_type": "client_credentials", "client_id": self.client_id}

    @property
    def server_ca(self) -> str:
        return str(self.cluster.balancer.folder / "certificate.pem")

    @cached_property
    def files(self) -> Files:
        return self.issued.write(self.folder, "erp")

    @cached_property
    def aliases(self) -> dict[str, str]:
        with self.cluster.client() as client:
            metadata = client.get("/.well-known/oauth-authorization-server").json()
        assert "tls_client_auth" in metadata["token_endpoint_auth_methods_supported"]
        aliases: dict[str, str] = metadata["mtls_endpoint_aliases"]
        return aliases

    def login(self, files: Files | None, headers: Any = None, **form: str) -> requests.Response:
        """With the certificate in these files, at the address that the metadata name."""
        return requests.post(
            self.aliases["token_endpoint"],
            data=self.form | form,
            headers=headers,
            cert=files,
            verify=self.server_ca,
            timeout=10,
        )

    def on_the_wire(
        self, headers: dict[str, str], *, sni: str | None, host: str, files: Files | None = None
    ) -> bytes:
        """The answer to a login with these headers as they are; `sni`: None is plain http."""
        body = urlencode(self.form)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = (
            f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {FORM}\r\n"
            f"Content-Length: {len(body)}\r\n{lines}Connection: close\r\n\r\n{body}"
        ).encode()
        ports = self.cluster.ports
        port = ports.http if sni is None else ports.https
        with socket.create_connection((HOST, port), timeout=10) as plain:
            if sni is None:
                plain.sendall(request)
                return read_to_end(plain)
            tls = ssl.create_default_context(cafile=self.server_ca)
            if files:
                tls.load_cert_chain(*files)
            with tls.wrap_socket(plain, server_hostname=sni) as connection:
                connection.sendall(request)
                return read_to_end(connection)


@pytest.fixture(autouse=True)
def name_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to this machine, so that clients are used as in production."""
    look_up = socket.getaddrinfo

    def here(host: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up(HOST if host == MTLS_NAME else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", here)


@pytest.fixture
def party(cluster: Cluster, tmp_path: Path) -> Party:
    issued = cluster.balancer.authority.issue()
    erp, node = cluster.new_erp(0), cluster.nodes[-1]
    files = issued.write(tmp_path, "erp")
    with override_settings(MTLS_URL=cluster.ports.mtls_url):  # commands run in this process
        node.manage(
            *("change_system_user", erp.client_id, "--auth-method", "tls_client_auth"),
            *("--certificate", files[0]),
        )
    return Party(cluster, tmp_path, erp.client_id, issued)


def test_requests_logs_in_with_its_certificate_and_with_a_renewed_one(
    party: Party, tmp_path: Path
) -> None:
    renewed = party.cluster.balancer.authority.issue(SUBJECT).write(tmp_path, "renewed")
    assert party.login(renewed).status_code == 200
    answer = party.login(party.files)
    assert answer.status_code == 200, answer.text
    assert answer.json()["token_type"] == "Bearer"
    assert answer.headers["X-Represented-Taxpayer"] == TIN
    revoked = requests.post(
        party.aliases["revocation_endpoint"],
        data={"client_id": party.client_id, "token": answer.json()["access_token"]},
        cert=party.files,
        verify=party.server_ca,
        timeout=10,
    )
    assert (revoked.status_code, revoked.content) == (200, b"")


def test_a_certificate_of_another_authority_or_time_is_refused_by_the_proxy(
    party: Party, tmp_path: Path
) -> None:
    right, now = party.cluster.balancer.authority, datetime.now(UTC)
    for wrong in (
        Authority("Authority of the tests").issue(SUBJECT),  # another one of the same name
        right.issue(SUBJECT, begins=now - 2 * DAY, lives=DAY),
        right.issue(SUBJECT, begins=now + DAY, lives=DAY),
    ):
        answer = party.login(wrong.write(tmp_path, "wrong"))
        assert answer.json()["error"] == "invalid_client"
        assert "The client certificate was not accepted" in answer.json()["error_description"]
        assert '/errors/malformed_credentials>; rel="help"' in answer.headers["Link"]
        assert "Cache-Control" in answer.headers


def spellings(issued: IssuedCertificate) -> list[dict[str, str]]:
    """The headers of a trusted proxy, as a client writes them."""
    right: list[dict[str, str]] = [nginx(issued), rfc9440(issued), nginx(issued) | rfc9440(issued)]
    return [
        *right,
        *({name.replace("-", "_"): value for name, value in headers.items()} for headers in right),
        *({name.upper(): value for name, value in headers.items()} for headers in right),
    ]


def test_a_forged_header_gives_nothing_at_any_address(party: Party) -> None:
    before = party.cluster.events(party)  # type: ignore[arg-type]  # it has a client_id
    for sni, host in (
        ("id.example.org", "id.example.org"),
        (MTLS_NAME, MTLS_NAME),  # without a certificate
        ("id.example.org", MTLS_NAME),
        (MTLS_NAME, "id.example.org"),
        ("id.example.org", "staff.id.example.org"),
        (None, "id.example.org"),
        (None, MTLS_NAME),
        ("id.example.org", "other.example.org"),
    ):
        for headers in spellings(party.issued):
            answer = party.on_the_wire(headers, sni=sni, host=host)
            assert b"access_token" not in answer
            assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 404"))
            assert b"certificate is not accepted" not in answer  # none was read
    assert party.cluster.events(party) == before  # type: ignore[arg-type]


def test_a_forged_header_does_not_replace_the_real_certificate(
    party: Party, tmp_path: Path
) -> None:
    other = party.cluster.balancer.authority.issue("CN=other,C=MY")
    files = other.write(tmp_path, "other")
    for headers in spellings(party.issued):
        answer = party.on_the_wire(headers, sni=MTLS_NAME, host=MTLS_NAME, files=files)
        assert answer.startswith(b"HTTP/1.1 400 invalid_client\r\n")
        assert b"This certificate is not accepted" in answer
    for headers in spellings(other):
        answer = party.on_the_wire(headers, sni=MTLS_NAME, host=MTLS_NAME, files=party.files)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_certificate_for_one_address_is_none_at_another(party: Party) -> None:
    # The connection has a certificate, and the request goes to an address that asks for none.
    answer = party.on_the_wire({}, sni=MTLS_NAME, host="id.example.org", files=party.files)
    assert b"access_token" not in answer
    answer = party.on_the_wire({}, sni="id.example.org", host=MTLS_NAME, files=party.files)
    assert b"access_token" not in answer


def test_the_public_address_asks_no_client_for_a_certificate(party: Party) -> None:
    asked = {name: _asks_for_a_certificate(party, name) for name in ("id.example.org", MTLS_NAME)}
    assert asked == {"id.example.org": False, MTLS_NAME: True}


def _asks_for_a_certificate(party: Party, name: str) -> bool:
    # With TLS 1.2 the server sends its request before the handshake ends: the client then sends an
    # empty list of certificates, which OpenSSL shows as a message.
    tls = ssl.create_default_context(cafile=party.server_ca)
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    messages: list[int] = []
    tls._msg_callback = lambda *args: messages.append(args[4])  # type: ignore[attr-defined]
    with (
        socket.create_connection((HOST, party.cluster.ports.https), timeout=10) as plain,
        tls.wrap_socket(plain, server_hostname=name),
    ):
        return 13 in messages  # CertificateRequest (RFC 5246 section 7.4)


def test_only_what_needs_a_certificate_is_at_this_address(party: Party) -> None:
    for path in ("/", "/.well-known/jwks.json", "/admin/", "/metrics", "/connect/introspect"):
        with httpx.Client(verify=party.cluster.balancer.tls) as client:
            answer = client.get(f"https://{MTLS_NAME}:{party.cluster.ports.https}{path}")
        assert_proxy_answer(answer, 404, "not_found", "nothing at this path")
