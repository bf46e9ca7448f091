"""What every answer gets, and what the public paths skip (contract 1)."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory
from django.utils import translation

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


@pytest.fixture
def in_malay() -> Iterator[None]:
    with translation.override("ms"):
        yield


@pytest.mark.django_db
@pytest.mark.usefixtures("in_malay")
def test_a_public_path_answers_in_english_whatever_page_was_answered_before() -> None:
    def staff_page(_: object) -> HttpResponseBase:
        raise AssertionError("a public path took the staff middleware")

    bypass_staff_middleware(staff_page)(get(PATH))
    assert translation.get_language() == settings.LANGUAGE_CODE


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
