"""One page in two languages: which one is shown, and how caches and search engines know."""

import re

import pytest
from django.test import Client

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
