"""A wrong path: 404 as before, and the text names the right one (contract 1: no redirect)."""

import json

import pytest
from django.conf import settings
from django.test import Client, RequestFactory

from identity.developers import wrong_paths
from identity.developers.openapi.document import document
from identity.developers.wrong_paths import meant_by
from identity.errors import not_found

LOGIN = "POST /connect/token"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        *(
            (path, LOGIN)
            for path in ("/connect/token/", "/Connect/Token", "/token", "/oauth/token")
        ),
        *((path, LOGIN) for path in ("/oauth2/token", "//connect//token", "/connect//token/")),
        *((path, LOGIN) for path in ("/oauth2/v2.0/token", "/api/v1/token", "/login", "/connect")),
        *((path, LOGIN) for path in ("/connect/token%20", "/connect/token.json", "/get_token")),
        ("/oauth2/introspect", "POST /connect/introspect"),
        ("/connect/introspection", "POST /connect/introspect"),
        *((path, "POST /connect/revocation") for path in ("/connect/revoke", "/oauth/revoke")),
        *(
            (path, "GET /.well-known/jwks.json")
            for path in ("/jwks", "/.well-known/jwks", "/certs")
        ),
        ("/.WELL-KNOWN/OAuth-Authorization-Server/", "GET /.well-known/oauth-authorization-server"),
        ("/sub/.well-known/openid-configuration", "GET /.well-known/openid-configuration"),
        *((path, "GET /api/v1/me") for path in ("/api/v1/me/", "/API/V1/ME", "/userinfo")),
        ("/api/v1/permissions/", "GET /api/v1/permissions"),
        *((path, "GET /openapi.json") for path in ("/swagger.json", "/docs", "/openapi")),
        *((path, "GET /errors/") for path in ("/errors", "/Errors/", "/error")),
        *((path, "GET /sandbox") for path in ("/sandbox/", "/Sandbox", "//sandbox")),
        ("/sandbox/reset/", "POST /sandbox/reset"),
        ("/ClientCheck.py", "GET /clientcheck.py"),
        *((path, "") for path in ("/nothing", "/", "", "///", "/tokens/of/mine", "/x" * 500)),
    ],
)
def test_what_was_meant(path: str, meant: str) -> None:
    assert meant_by(path) == meant


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
@pytest.mark.parametrize("path", ["/connect/token/", "/Connect/Token", "/token", "//connect/token"])
def test_the_answer_names_the_right_address_and_does_not_lead_there(path: str, method: str) -> None:
    answer = Client().generic(method, path, headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert not {"Location", "Set-Cookie"} & set(answer.headers)
    body = json.loads(answer.content)
    assert set(body) == {"error", "error_description"}
    assert body["error"] == "not_found"
    right = f"Send POST to {settings.AUTH_URL}/connect/token instead, exactly so"
    assert right in body["error_description"]


def test_where_nothing_is_clear_nothing_is_guessed_and_nothing_repeated() -> None:
    answer = Client().get("/secret-place")
    assert json.loads(answer.content) == {
        "error": "not_found",
        "error_description": "There is nothing at this path.",
    }


def test_no_cache_may_store_that_there_is_nothing() -> None:
    """A later version of the service may have something there."""
    where_logins_are_served = not_found(RequestFactory().get("/secret-place"), Exception())
    for answer in (where_logins_are_served, Client().get("/secret-place")):
        assert "no-store" in answer.headers.get("Cache-Control", "")


def test_every_address_without_a_variable_part_is_known_with_its_method() -> None:
    described = {
        path: {method.upper() for method in methods}
        for path, methods in document(settings.AUTH_URL)["paths"].items()
        if "{" not in path
    }
    described |= {path: {"GET"} for path in ("/errors/", "/openapi.json", "/openapi.yaml")}
    assert described.keys() == wrong_paths._METHODS.keys()
    for path, method in wrong_paths._METHODS.items():
        assert method in described[path], path


def test_a_near_miss_has_a_reference_and_links_to_the_right_address() -> None:
    answer = Client().post("/oauth/token")
    link = f'<{settings.AUTH_URL}/connect/token>; rel="related"'
    assert (answer.status_code, answer["Link"].split(", ")[0]) == (404, link)
    text = answer.json()["error_description"]
    assert text.endswith(f"Reference: {answer['correlationId']}")
    assert "correlationId" not in Client().post("/nonsense").headers
