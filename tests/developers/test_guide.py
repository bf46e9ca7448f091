"""`/guide`: docs/erp-developers.md, whole, and safe to show."""

import re

import pytest

from identity.developers.guide import as_html
from tests.developers.pages import page_of


def test_each_link_within_it_leads_to_a_heading() -> None:
    page = page_of("/guide")
    ids = re.findall(r'<h[1-6] id="([\w-]+)"', page)
    assert len(ids) == len(set(ids)) > 10
    links = re.findall(r'href="#([\w-]+)"', page.partition('class="guide"')[2])
    assert links
    assert set(links) <= set(ids)
    assert not re.findall(r'href="[^"#h/]', page)  # to a file of the source code


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_nothing_in_a_document_becomes_a_script(text: str) -> None:
    html = as_html(text)
    assert "<script" not in html
    assert 'href="javascript' not in html
