"""A member of staff before the running service, as a browser: cookies, forms, second factor."""

import re

import httpx

from tests.servers.service import Service
from tests.support.accounts import PASSWORD, new_staff, totp_code, with_totp

SIGN_IN = "/signin/"


def new_boss(node: Service) -> str:
    """The name of a superuser with an authenticator app that knows `TOTP_SECRET`."""
    node.run(lambda: with_totp(new_staff()))
    return "boss"


def sign_in(browser: httpx.Client, origin: str, username: str) -> httpx.Response:
    """The answer to the code; `origin` is the address that the browser shows."""
    first = send_form(browser, SIGN_IN, origin, login=username, password=PASSWORD)
    assert first.status_code == 302, first.text
    return send_form(browser, first.headers["Location"], origin, code=totp_code())


def send_form(browser: httpx.Client, path: str, origin: str, **fields: str) -> httpx.Response:
    page = browser.get(path)
    assert page.status_code == 200, (path, page.status_code)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token, page.text
    form = {"csrfmiddlewaretoken": token[1], **fields}
    return browser.post(path, data=form, headers={"Origin": origin})  # Django checks the origin
