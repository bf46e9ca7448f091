"""`/reference`: every address of the description, readable without a script."""

from html import unescape

from django.conf import settings

from identity.developers.openapi.document import document
from tests.developers.pages import page_of


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
