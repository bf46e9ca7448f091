"""What every answer gets, what public paths skip, which headers never reach Django (contract 1)."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory

from identity.databases import database
from identity.long_headers import without_long_headers
from identity.middleware import bypass_staff_middleware, set_content_length
from tests.support.erp import PATH

get = RequestFactory().get


@pytest.mark.parametrize(
    ("response", "length"),
    [
        (HttpResponse("h\xe9"), "3"),
        (HttpResponse(), "0"),
        # An answer to HEAD names the length of what GET would answer.
        (HttpResponse(headers={"Content-Length": "42"}), "42"),
        (StreamingHttpResponse(["a"]), None),
    ],
)
def test_an_answer_has_its_length_unless_it_is_a_stream(
    response: HttpResponseBase, length: str | None
) -> None:
    answer = set_content_length(lambda _: response)(get("/"))
    assert answer.headers.get("Content-Length") == length


@pytest.mark.parametrize(
    "path",
    [
        *(f"{PATH}/", "/en", "/admin/", f"/x{PATH}", "/api/v1/logins//explanation"),
        *("/api/v1/logins/x/y/explanation", "//api/v1/logins/x/explanation"),
        *("/api/v1/logins/x/explanation/", "/admin/api/v1/logins/x/explanation"),
    ],
)
def test_any_other_path_takes_the_whole_chain(path: str) -> None:
    page = HttpResponse("a page")
    assert bypass_staff_middleware(lambda _: page)(get(path)) is page


def test_what_django_refuses_is_answered_in_json_to_machines() -> None:
    browser = Client(raise_request_exception=False, headers={"host": "a,b"})
    for path, kind in (("/nothing", "application/json"), ("/admin/", "text/html")):
        answer = browser.get(path)
        assert answer.status_code == 400
        assert answer["Content-Type"].startswith(kind)


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("CONTENT_TYPE", 200),
        ("HTTP_COOKIE", 4096),
        *(
            (f"HTTP_{name}", 500)
            for name in ("ACCEPT", "ACCEPT_LANGUAGE", "IF_NONE_MATCH", "RANGE")
        ),
        # Without these a request would come from elsewhere, or be done twice.
        ("HTTP_X_FORWARDED_FOR", None),
        ("HTTP_X_FORWARDED_PROTO", None),
        ("HTTP_IDEMPOTENCY_KEY", None),
        ("HTTP_AUTHORIZATION", None),
        ("HTTP_ORIGIN", None),
    ],
)
def test_a_header_beyond_its_length_is_as_if_it_were_absent(name: str, longest: int | None) -> None:
    seen: list[dict[str, Any]] = []

    def see(environ: dict[str, Any], _start: Any) -> list[bytes]:
        seen.append(environ)
        return []

    application = without_long_headers(see)
    for length in (longest or 30_000, (longest or 30_000) + 1):
        application({name: "a" * length, "wsgi.input": BytesIO()}, lambda *_: None)
    assert [name in environ for environ in seen] == [True, longest is None]


MALFORMED = r"is malformed\..*percent-encoding"
UNKNOWN = "The URL of a database must begin with postgresql:// or sqlite://, not {!r}."


@pytest.mark.parametrize(
    ("url", "engine"),
    [
        *((None, "sqlite3"), ("", "sqlite3"), ("sqlite:///{folder}/registry.sqlite3", "sqlite3")),
        ("postgres://identity@127.0.0.1/identity", "postgresql"),
        ("postgresql://identity@127.0.0.1/identity?pooling=transaction", "postgresql"),
    ],
)
def test_a_known_engine_is_chosen_by_the_url(url: str | None, engine: str, tmp_path: Path) -> None:
    chosen = database(url and url.format(folder=tmp_path), tmp_path)
    assert chosen["ENGINE"] == f"django.db.backends.{engine}"


@pytest.mark.parametrize("scheme", ["mysql", "oracle", "postgresql+psycopg", "redshift", ""])
def test_an_unknown_engine_is_an_error_that_shows_no_password(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as error:
        database(f"{scheme}://identity:password@127.0.0.1/identity", tmp_path)
    assert str(error.value) == UNKNOWN.format(scheme)


@pytest.mark.parametrize(
    "rest",
    [
        *("identity:hunter/2@127.0.0.1", "identity:hunter#2@127.0.0.1"),
        *("identity:hunter[2@127.0.0.1", "identity@127.0.0.1:hunter", "identity@127.0.0.1:99999"),
    ],
)
def test_a_malformed_url_is_an_error_that_shows_nothing_of_it(rest: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=MALFORMED) as error:
        database(f"postgresql://{rest}/identity", tmp_path)
    assert "hunter" not in str(error.value)


def test_nothing_stays_in_a_session_that_a_pooler_gives_to_another(tmp_path: Path) -> None:
    direct = database("postgresql://u@h/n", tmp_path)
    pooled = database("postgresql://u@h/n?pooling=transaction&sslmode=require", tmp_path)
    assert direct["OPTIONS"]["prepare_threshold"] > 1_000_000  # on request only
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert "pooling" not in pooled["OPTIONS"]  # libpq knows no such option


def test_a_host_that_vanishes_is_noticed_in_ten_seconds(tmp_path: Path) -> None:
    """That these options do it: tests/live/test_readiness.py, with smaller numbers."""
    options = database("postgresql://u@h/n", tmp_path)["OPTIONS"]
    assert options["connect_timeout"] == 3
    assert options["tcp_user_timeout"] == 10_000
    idle, each, times = (options[f"keepalives_{name}"] for name in ("idle", "interval", "count"))
    assert idle + each * times <= 10
