"""One page in two languages: which one is shown, and how caches and search engines know."""

import re

import pytest
from django.test import Client, override_settings

from identity.developers.pages import preferred
from tests.developers.pages import page_of

ADDRESSES = ["", "guide", "errors/", "errors/no_permission"]
every_address = pytest.mark.parametrize("address", ADDRESSES)


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        *(("", "en"), ("ms", "ms"), ("ms-MY", "ms"), ("ms-MY,ms;q=0.9,en;q=0.5", "ms")),
        *(("en-GB,en;q=0.9,ms;q=0.5", "en"), ("de", "en"), ("de,ms;q=0.1", "ms"), ("*", "en")),
        *(("de;q=0.9, fr", "en"), ("nonsense;q=", "en"), ("ms;q=0", "en"), ("MS", "ms")),
        ("a" * 10_000, "en"),
    ],
)
def test_the_browser_chooses_among_our_languages(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


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
def test_each_page_names_itself_in_every_language(address: str) -> None:
    for prefix in ("", "en/", "ms/"):
        page = page_of(f"/{prefix}{address}")
        url = "http://127.0.0.1:8000"
        assert f'<link rel="canonical" href="{url}/{prefix}{address}">' in page
        for code, place in (("x-default", ""), ("en", "en/"), ("ms", "ms/")):
            assert f'hreflang="{code}" href="{url}/{place}{address}"' in page
        assert f'<a href="/en/{address}" lang="en" hreflang="en"' in page
        assert f'<a href="/ms/{address}" lang="ms" hreflang="ms"' in page


@every_address
def test_a_page_may_be_cached_and_is_asked_for_again_by_its_etag(address: str) -> None:
    first = Client().get(f"/{address}")
    assert first["Cache-Control"] == "public, max-age=3600"
    assert not {"Set-Cookie", "Location"} & set(first.headers)
    again = Client().get(f"/{address}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (again["ETag"], again["Vary"]) == (first["ETag"], "Accept-Language")
    malay = Client().get(f"/{address}", headers={"Accept-Language": "ms"})
    assert malay["ETag"] != first["ETag"]


@every_address
def test_a_page_runs_no_script_and_loads_nothing_from_elsewhere(address: str) -> None:
    answer = Client().get(f"/{address}")
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert answer["X-Content-Type-Options"] == "nosniff"
    page = answer.content.decode()
    assert re.findall(r"<script|<style|<img|<[^>]+ (?:style|on\w+)=|javascript:", page) == []


@override_settings(AUTH_URL="https://id.example.org/sub")
def test_below_a_path_every_link_stays_below_it() -> None:
    page = page_of("/errors/no_permission")
    assert 'href="/sub/developers/style.css"' in page
    assert 'href="/sub/errors/"' in page
    assert 'rel="canonical" href="https://id.example.org/sub/errors/no_permission"' in page
    assert 'href="/errors' not in page
