"""The pages for developers: whole, safe to show, cached, in two languages, without dead links."""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings
from pytest_django import Settings

from identity import errors
from identity.developers import packages
from identity.developers.examples import ACCESS_TOKEN, as_text, issued_example, refused_example
from identity.developers.guide import _GUIDES, as_html
from identity.developers.openapi.document import document
from identity.errors import meant_by, not_found
from taxpayers.rules import RegistryReason
from tests.conftest import StartService
from tests.dpop.dpop_erp import new_dpop_erp
from tests.endpoint.test_event_loop import through_django
from tests.endpoint.test_refusals import ROWS, Row, as_response
from tests.narrow_credentials.test_logins import allow_networks, login_from
from tests.servers.processes import CHECKOUT, completed
from tests.support.erp import Erp, new_erp
from tests.support.outages import database_out_of_reach
from tokens.refusals.table import REFUSALS, Check, ProtocolReason

OPTIONAL = ("/sandbox", "/clientcheck.py", "/api/v1/management/openapi.json")


def page_of(path: str, **headers: str) -> str:
    response = Client().get(path, headers={n.replace("_", "-"): v for n, v in headers.items()})
    assert response.status_code == 200, path
    assert response["Content-Type"] == "text/html; charset=utf-8"
    return unescape(response.content.decode())


@pytest.mark.django_db
def test_every_link_leads_somewhere() -> None:
    links = set(re.findall(r'<a [^>]*href="(/[^"]*)"', page_of("/")))
    assert {"/guide", "/errors/", "/openapi.json", "/health", *OPTIONAL} <= links
    for link in links - {"/admin/"}:
        assert Client().get(link).status_code == 200, link


def test_a_login_node_has_it_without_what_is_served_elsewhere(service: StartService) -> None:
    node = service(SERVE="login", ENVIRONMENT="live")
    page = httpx.get(f"{node.url}/").text
    assert "This is the <strong>live</strong> environment" in page
    assert "No credentials yet?" not in page
    for link in ("/sandbox", "/api/v1/management/openapi.json", "/admin/"):
        assert f'href="{link}"' not in page, link
    assert 'href="/clientcheck.py"' in page
    assert httpx.get(f"{node.url}/ms/").headers["Content-Language"] == "ms"
    assert httpx.get(f"{node.url}/health").json()["environment"] == "live"
    described = httpx.get(f"{node.url}/openapi.json").json()
    assert described["servers"] == [{"url": node.url}]
    assert "/clientcheck.py" in described["paths"]
    hint = httpx.post(f"{node.url}/connect/token/").json()["error_description"]
    assert f"POST to {node.url}/connect/token" in hint


# --- The guides, and `/packages/`, what they name -------------------------------------------------


GUIDES = ("/guide", "/api-teams", "/management-api", "/webhooks", "/permission-requests")


@pytest.mark.parametrize("address", GUIDES)
def test_each_link_within_it_leads_to_a_heading(address: str) -> None:
    page = page_of(address)
    ids = re.findall(r'<h[1-6] id="([\w-]+)"', page)
    assert len(ids) == len(set(ids)) > 3
    guide = page.partition('class="guide"')[2]
    assert set(re.findall(r'href="#([\w-]+)"', guide)) <= set(ids)
    for other, heading in re.findall(r'href="(/[\w-]+)(?:#([\w-]+))?"', guide):
        assert other in GUIDES
        assert not heading or f'id="{heading}"' in page_of(other)
    assert not re.findall(r'href="[^"#h/]', page)  # to a file of the source code


@pytest.mark.parametrize("address", ["/", *GUIDES])
def test_a_page_names_the_address_that_it_is_served_from(address: str, settings: Settings) -> None:
    settings.AUTH_URL = "https://id.country.test/einvoicing"
    page = page_of(address)
    assert "https://id.country.test/einvoicing" in page
    assert "127.0.0.1:8000" not in page
    assert not re.search(r"//(?:staff\.)?id\.example\.org", page)


def test_each_file_that_the_guide_for_api_teams_names_is_there() -> None:
    files = set(re.findall(r'href="(/packages/[^"]+)"', page_of("/api-teams")))
    files |= set(re.findall(r'href="(/packages/[^"#]+)"', page_of("/packages/")))
    assert {"/packages/examples/flask_api.py", "/packages/CHANGELOG.md"} <= files
    for file in files:
        answer = Client().get(file)
        assert answer.status_code == 200
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert b"./packages/" not in answer.content, "it must work without the repository"
    for outside in ("../pyproject.toml", "examples/../README.md", "examples/", "x"):
        assert Client().get(f"/packages/{outside}").status_code == 404


def test_pip_installs_what_is_offered_and_refuses_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """As a release builds it; what pip reads is the page."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT / "packages" / "einvoicing_tokens", check=True)
    monkeypatch.setattr(packages, "_BUILT", tmp_path)
    settings.AUTH_URL = "https://packages.test"  # no page of another test
    page = page_of("/ms/packages/")
    links = re.findall(r'href="/packages/(\S+)#sha256=(\w+)"', page)
    assert [name.rpartition("-")[2] for name, _digest in links] == ["any.whl", "0.1.0.tar.gz"]
    for name, digest in links:
        content = Client().get(f"/packages/{name}").content
        assert hashlib.sha256(content).hexdigest() == digest
        (tmp_path / "offered" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "offered" / name).write_bytes(content)
    listed = tmp_path / "list.html"
    listed.write_text(page.replace("/packages/", f"file://{tmp_path}/offered/"))
    download = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index", "--find-links"]
    command = [*download, str(listed), "einvoicing-tokens", "--no-cache-dir", "--dest"]
    assert completed([*command, str(tmp_path / "got")]).returncode == 0
    (tmp_path / "offered" / links[0][0]).write_bytes(b"another")
    refused = completed([*command, str(tmp_path / "not got")])
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()


def test_every_guide_is_served_in_two_languages_and_is_in_the_image() -> None:
    for guide in _GUIDES.values():
        page, english = (page_of(f"/{code}/{guide.address}") for code in ("ms", "en"))
        assert '<div class="guide" lang="ms">' in page, guide
        assert "Panduan ini dalam bahasa Inggeris." not in page
        assert "<code>test_" not in page + english  # what holds a sentence is for us
        pattern = r'<h[1-6] id="([\w-]+)"'
        assert re.findall(pattern, page) == re.findall(pattern, english)
    assert 'href="/guide#connect-without-a-secret"' in page_of("/ms/permission-requests")
    assert '<div class="guide" lang="en">' in page_of("/ms/reference")
    visible = (CHECKOUT / ".dockerignore").read_text().split()
    assert {f"!docs/{file}" for file in (*_GUIDES, "ms")} <= {*visible}


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_nothing_in_a_document_becomes_a_script(text: str) -> None:
    html = as_html(text)
    assert "<script" not in html
    assert 'href="javascript' not in html


# --- `/reference` ---------------------------------------------------------------------------------


def test_it_has_every_address_parameter_and_status_of_the_description() -> None:
    page = unescape(page_of("/reference"))
    assert "<script" not in page
    for path, methods in document(settings.AUTH_URL)["paths"].items():
        for method in set(methods) & {"get", "post", "delete"}:
            _before, found, rest = page.partition(f">{method.upper()} {path}</h2>")
            assert found, path
            section = rest.partition("<h2")[0]
            for status in methods[method]["responses"]:
                assert f"<td><code>{status}</code></td>" in section, (path, status)
    login = page.partition(">POST /connect/token</h2>")[2].partition("<h2")[0]
    for name in ("grant_type", "client_id", "client_secret", "client_assertion", "scope"):
        assert f"<td><code>{name}</code></td>" in login
    assert "onbehalfof" in login


# --- One page in two languages --------------------------------------------------------------------


ADDRESSES = ["", "management-api", "packages/", "reference", "errors/", "errors/no_permission"]
every_address = pytest.mark.parametrize("address", ADDRESSES)


@every_address
@pytest.mark.parametrize(
    ("prefix", "accepted", "language"),
    [("", "en", "en"), ("", "ms", "ms"), ("en/", "ms", "en"), ("ms/", "en", "ms")],
)
def test_a_plain_address_is_in_the_language_of_the_browser_and_any_other_in_its_own(
    address: str, prefix: str, accepted: str, language: str
) -> None:
    answer = Client().get(f"/{prefix}{address}", headers={"Accept-Language": accepted})
    assert answer["Content-Language"] == language
    assert answer.get("Vary") == (None if prefix else "Accept-Language")
    assert f'<html lang="{language}">' in answer.content.decode()


@every_address
def test_a_page_may_be_cached_runs_no_script_and_loads_nothing_from_elsewhere(address: str) -> None:
    first = Client().get(f"/{address}")
    assert first["Cache-Control"] == "public, max-age=3600"
    assert not {"Set-Cookie", "Location"} & set(first.headers)
    again = Client().get(f"/{address}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (again["ETag"], again["Vary"]) == (first["ETag"], "Accept-Language")
    malay = Client().get(f"/{address}", headers={"Accept-Language": "ms"})
    assert malay["ETag"] != first["ETag"]
    policy = first["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert first["X-Content-Type-Options"] == "nosniff"
    page = first.content.decode()
    assert re.findall(r"<script|<style|<img|<[^>]+ (?:style|on\w+)=|javascript:", page) == []


def test_the_list_has_every_reason_in_the_order_of_the_checks() -> None:
    page = page_of("/errors/")
    rows = re.findall(
        r'<tr><th scope="row"><a href="/errors/(\w+)">(.*?)</a></th><td><code>(\w+)</code></td>'
        r"<td><code>(\d+ \w+)</code></td><td>(.*?)</td></tr>",
        page,
    )
    assert rows == [
        (reason, row.staff_text, reason, f"{row.status} {row.error}", row.fixed_by)
        for reason, row in REFUSALS.items()
    ]


@pytest.mark.parametrize("name", ["unknown", "no_permission/", "No_Permission", "<script>"])
def test_an_unknown_reason_is_a_404_in_json(name: str) -> None:
    answer = Client().get(f"/errors/{name}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert json.loads(answer.content)["error"] == "not_found"
    assert b"<" not in answer.content


# --- The example of each page: what a real login is answered, but for references and dates --------


def of_table(row: Row) -> HttpResponse:
    return as_response(through_django(next(iter(row.provoked.values()))()))


def insecure() -> HttpResponse:
    with override_settings(AUTH_URL="https://id.example.org"):
        return new_erp().login()


def another_network() -> HttpResponse:
    erp = new_erp()
    allow_networks(erp, "198.51.100.0/24")
    return login_from(erp, "203.0.113.7")


def old_proof() -> HttpResponse:
    erp = new_dpop_erp()
    return erp.post(erp.proof(iat=int(time.time()) - 3600))


def out_of_reach() -> HttpResponse:
    erp = new_erp()
    with database_out_of_reach():
        return erp.login()


def fault_of_ours() -> HttpResponse:
    erp = new_erp()
    with patch("tokens.operations.toolkit.decide", side_effect=ZeroDivisionError("of a test")):
        return erp.login()


# For each reason a real login that is refused for it.
LOGINS: dict[str, Callable[[], HttpResponse]] = {
    **{row.reason: partial(of_table, row) for row in ROWS},
    ProtocolReason.INSECURE_TRANSPORT: insecure,
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: another_network,
    ProtocolReason.INVALID_DPOP_PROOF: old_proof,
    ProtocolReason.USE_DPOP_NONCE: lambda: new_dpop_erp(nonce=False).post(),
    ProtocolReason.TEMPORARILY_UNAVAILABLE: out_of_reach,
    ProtocolReason.SERVER_ERROR: fault_of_ours,
}

# What differs from login to login: references, moments, a nonce, and where a limit stands.
_VARIES = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|(?<=DPoP-Nonce: )\S+|(?<=Retry-After: )\d+"
)


def on_the_wire(response: HttpResponse) -> str:
    lines = [f"HTTP/1.1 {response.status_code} {response.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in response.items()]
    return "\n".join([*lines, "", response.content.decode()])


def essence(text: str) -> str:
    return _VARIES.sub("*", text)


@pytest.mark.django_db
@pytest.mark.parametrize("reason", REFUSALS)
def test_each_reason_has_a_page_that_says_what_happened_and_who_can_fix_it(reason: str) -> None:
    """Its example is what a real login is answered."""
    page, refusal = page_of(f"/errors/{reason}"), REFUSALS[reason]
    assert f"<title>{refusal.staff_text} · Access tokens for e-invoicing</title>" in page
    assert f"<h1>{refusal.staff_text}</h1>" in page
    assert f"<dd>{refusal.fixed_by}</dd>" in page
    assert f"<code>{reason}</code>" in page
    assert f"<code>{refusal.status} {refusal.error}</code>" in page
    assert '<p class="lead">' in page
    if refusal.check:
        assert f"<dt>Check {[*Check].index(refusal.check) + 1} of {len(Check)}</dt>" in page
    shown = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert shown.index(refusal.staff_text) < shown.index("Who can fix it") < shown.index("Example")
    prose = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert not {"{", "}"} & set(prose)  # no placeholder is left
    example = as_text(refused_example(reason, settings.AUTH_URL))
    assert example in page
    real = on_the_wire(LOGINS[reason]()).replace("https://id.example.org", settings.AUTH_URL)
    assert essence(example) == essence(real)


def test_the_example_of_a_token_is_a_real_answer(erp: Erp) -> None:
    answer = erp.login()
    token = json.loads(answer.content)["access_token"]
    real = on_the_wire(answer).replace(token, ACCESS_TOKEN).replace(erp.tin, "C1234567890")
    example = as_text(issued_example(settings.AUTH_URL))
    length = re.compile(r"Content-Length: \d+")
    assert length.sub("*", essence(example)) == length.sub("*", essence(real))
    assert example in page_of("/")


MEANT = {
    "POST /connect/token": (
        *("/connect/token/", "/Connect/Token", "/token", "/oauth/token", "/oauth2/token"),
        *("//connect//token", "/connect//token/", "/oauth2/v2.0/token", "/api/v1/token"),
        *("/login", "/connect", "/connect/token%20", "/connect/token.json", "/get_token"),
    ),
    "POST /connect/introspect": ("/oauth2/introspect", "/connect/introspection"),
    "POST /connect/revocation": ("/connect/revoke", "/oauth/revoke"),
    "GET /.well-known/jwks.json": ("/jwks", "/.well-known/jwks", "/certs"),
    "GET /.well-known/oauth-authorization-server": ("/.WELL-KNOWN/OAuth-Authorization-Server/",),
    "GET /.well-known/openid-configuration": ("/sub/.well-known/openid-configuration",),
    "GET /api/v1/me": ("/api/v1/me/", "/API/V1/ME", "/userinfo"),
    "GET /api/v1/permissions": ("/api/v1/permissions/",),
    "GET /openapi.json": ("/swagger.json", "/docs", "/openapi"),
    "GET /errors/": ("/errors", "/Errors/", "/error"),
    "GET /sandbox": ("/sandbox/", "/Sandbox", "//sandbox"),
    "POST /sandbox/reset": ("/sandbox/reset/",),
    "GET /clientcheck.py": ("/ClientCheck.py",),
    "": ("/nothing", "/", "", "///", "/tokens/of/mine", "/x" * 500),
}


@pytest.mark.parametrize("meant", MEANT)
def test_what_was_meant(meant: str) -> None:
    for path in MEANT[meant]:
        assert meant_by(path) == meant, path


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
@pytest.mark.parametrize("path", ["/connect/token/", "/Connect/Token", "/token", "//connect/token"])
def test_the_answer_names_the_right_address_and_does_not_lead_there(path: str, method: str) -> None:
    answer = Client().generic(method, path, headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert not {"Location", "Set-Cookie"} & set(answer.headers)
    body = json.loads(answer.content)
    assert set(body) == {"error", "error_description"}
    assert body["error"] == "not_found"
    right, text = f"{settings.AUTH_URL}/connect/token", body["error_description"]
    assert f"Send POST to {right} instead, exactly so" in text
    assert text.endswith(f"Reference: {answer['correlationId']}")
    assert answer["Link"].split(", ")[0] == f'<{right}>; rel="related"'


def test_where_nothing_is_clear_nothing_is_guessed_repeated_or_stored_by_a_cache() -> None:
    """A later version of the service may have something there."""
    where_logins_are_served = not_found(RequestFactory().get("/secret-place"), Exception())
    for answer in (where_logins_are_served, Client().get("/secret-place")):
        assert json.loads(answer.content) == {
            "error": "not_found",
            "error_description": "There is nothing at this path.",
        }
        assert "no-store" in answer.headers.get("Cache-Control", "")
        assert "correlationId" not in answer.headers


def test_every_address_without_a_variable_part_is_known_with_its_method() -> None:
    described = {
        path: {method.upper() for method in methods}
        for path, methods in document(settings.AUTH_URL)["paths"].items()
        if "{" not in path
    }
    described |= {path: {"GET"} for path in ("/errors/", "/openapi.json")}
    assert described.keys() == errors._METHODS.keys()
    for path, method in errors._METHODS.items():
        assert method in described[path], path
