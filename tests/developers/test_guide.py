"""`/guide`: docs/erp-developers.md, whole, and safe to show."""

import re

import pytest

from identity.developers.guide import as_html
from tests.developers.pages import page_of, text_of
from tests.servers.processes import CHECKOUT

GUIDE = (CHECKOUT / "docs" / "erp-developers.md").read_text(encoding="utf-8")


def test_it_has_every_heading_and_every_table_of_the_document() -> None:
    page = page_of("/guide")
    prose = re.sub(r"^```.*?^```$", "", GUIDE, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    shown = re.findall(r"<h[1-6] id=\"[\w-]+\">(.*?)</h", page)
    assert [text_of(each) for each in shown] == [each.replace("`", "") for each in headings]
    assert page.count("<table") == len(re.findall(r"^\| --- ", GUIDE, re.MULTILINE))
    assert page.count('<pre tabindex="0">') == GUIDE.count("\n```") // 2


def test_each_link_within_it_leads_to_a_heading() -> None:
    page = page_of("/guide")
    ids = re.findall(r'<h[1-6] id="([\w-]+)"', page)
    assert len(ids) == len(set(ids)) > 10
    links = re.findall(r'href="#([\w-]+)"', page.partition('class="guide"')[2])
    assert links
    assert set(links) <= set(ids)
    assert not re.findall(r'href="[^"#h/]', page)  # to a file of the source code


def test_in_malay_it_says_that_it_is_in_english() -> None:
    assert '<div class="guide" lang="en">' in page_of("/ms/guide")
    assert '<p class="note">' in page_of("/ms/guide")
    assert '<p class="note">' not in page_of("/guide")


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[x](javascript:alert(1))"])
def test_nothing_in_a_document_becomes_a_script(text: str) -> None:
    html = as_html(text)
    assert "<script" not in html
    assert 'href="javascript' not in html
