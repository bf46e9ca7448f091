"""A page for developers as tests read it."""

import re
from html import unescape

from django.test import Client


def page_of(path: str, **headers: str) -> str:
    """The HTML, with its characters as they are shown."""
    response = Client().get(path, headers={n.replace("_", "-"): v for n, v in headers.items()})
    assert response.status_code == 200, path
    assert response["Content-Type"] == "text/html; charset=utf-8"
    return unescape(response.content.decode())


def text_of(page: str) -> str:
    """What it shows, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())
