"""The steps of a sign-in."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.support.accounts import PASSWORD, totp_code

ADMIN = "/admin/"
SIGN_IN = "/signin/"


def give_password(client: Client, username: str, password: str = PASSWORD) -> HttpResponse:
    return client.post(SIGN_IN, {"login": username, "password": password})  # type: ignore[return-value]


def give_code(client: Client, code: str) -> HttpResponse:
    return client.post(reverse("mfa_authenticate"), {"code": code})  # type: ignore[return-value]


def sign_in(client: Client, user: User) -> Client:
    assert give_password(client, user.username).status_code == 302
    assert give_code(client, totp_code()).status_code == 302
    return client


def is_signed_in(client: Client) -> bool:
    return client.get(ADMIN).status_code == 200


def html_of(answer: Any) -> str:
    return str(answer.content.decode())


def aged(client: Client, seconds: float = 0, **moments: float) -> Client:
    """As if its last password or code, and these moments, were so many seconds earlier."""
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= seconds
    for name, earlier in moments.items():
        session[name] -= earlier
    session.save()
    return client
