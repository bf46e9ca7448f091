"""`deploy/nginx.conf` as text: headers of certificates, and what no client may take from others."""

import re

from tests.servers.nginx import CONFIGURATION

HEADERS = ("Client-Cert", "Client-Cert-Chain", "SSL-Client-Cert", "SSL-Client-Verify")
# What is on purpose another thing at the address for certificates.
DIFFERENT = {
    *("listen", "server_name", "include", "error_page", "ssl_session_cache", "ssl_session_timeout"),
    *("ssl_client_certificate", "ssl_verify_client", "ssl_verify_depth"),
    *("proxy_set_header SSL-Client-Cert", "proxy_set_header SSL-Client-Verify"),
    "proxy_set_header X-Proxy-Secret",
}


def servers() -> dict[str, str]:
    text = re.sub(r"(?m)(^|\s)#.*$", "", CONFIGURATION.read_text())
    found = {}
    for block in re.findall(r"(?ms)^server \{\n(.*?)^\}", text):
        name = re.search(r"server_name (\S+);", block)
        assert name
        found[name[1]] = block
    return found


def directives(block: str) -> set[str]:
    """Those of the server itself, without its locations."""
    outside = re.sub(r"(?ms)^    location .*?^    \}", "", block)
    return {" ".join(part.split()) + ";" for part in outside.split(";") if part.strip()}


def locations(block: str) -> list[str]:
    return re.findall(r"(?ms)^    location .*?^    \}", block)


def test_each_location_that_passes_on_sets_every_header() -> None:
    found = servers()
    assert set(found) == {"id.example.org", "mtls.id.example.org", "staff.id.example.org"}
    for block in found.values():
        for location in locations(block):
            if "proxy_pass" not in location:
                continue
            # One that sets any header inherits none.
            scope = location if "proxy_set_header" in location else "".join(directives(block))
            for header in HEADERS:
                assert len(re.findall(rf"proxy_set_header {header} ", scope)) == 1, location
            secret = r'proxy_set_header X-Proxy-Secret "";|include /etc/nginx/proxy-secret\.conf;'
            assert len(re.findall(secret, scope)) == 1, location


def test_the_address_for_certificates_differs_in_nothing_else() -> None:
    found = servers()
    public, mtls = (directives(found[f"{name}id.example.org"]) for name in ("", "mtls."))
    name = re.compile(r"proxy_set_header \S+|\w+")
    assert {name.match(line)[0] for line in public ^ mtls} == DIFFERENT  # type: ignore[index]


def test_slow_clients_end_in_seconds_and_none_takes_a_node_from_the_others() -> None:
    found = {name: directives(block) for name, block in servers().items()}
    assert all("client_header_timeout 10s;" in one for one in found.values())  # the handshake, too
    for name in ("id.example.org", "mtls.id.example.org"):
        assert {"client_body_timeout 15s;", "send_timeout 10s;"} <= found[name]
    nodes = re.findall(r"server 127\.0\.0\.1:800[01](.*);", CONFIGURATION.read_text())
    assert nodes == [" max_fails=0"] * 2
