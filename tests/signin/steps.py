"""The fixtures and steps of the sign-in tests; import `production` and `officer` where needed."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.support.accounts import PASSWORD, new_staff, with_totp

ADMIN = "/admin/"
SIGN_IN = "/signin/"


@pytest.fixture(autouse=True)
def production(settings: Settings) -> None:
    """The settings of production, on every database of the tests."""
    settings.SECOND_FACTOR_REQUIRED = True
    settings.IS_EMBEDDED = False
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick


@pytest.fixture
def officer() -> User:
    return with_totp(new_staff("security officer"))


def give_password(client: Client, username: str, password: str = PASSWORD) -> HttpResponse:
    return client.post(SIGN_IN, {"login": username, "password": password})  # type: ignore[return-value]


def give_code(client: Client, code: str) -> HttpResponse:
    return client.post(reverse("mfa_authenticate"), {"code": code})  # type: ignore[return-value]


def is_signed_in(client: Client) -> bool:
    return client.get(ADMIN).status_code == 200


def html_of(answer: Any) -> str:
    return str(answer.content.decode())
