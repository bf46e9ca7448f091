"""What every answer gets, what public paths skip, which headers never reach Django (contract 1)."""

from io import BytesIO
from typing import Any

import pytest
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory

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
