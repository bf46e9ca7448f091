"""The sign-in as in production. It may be read before Django: nothing that needs models at top."""

from typing import TYPE_CHECKING

import pytest
from pytest_django import Settings

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@pytest.fixture(autouse=True)
def production(settings: Settings) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    settings.IS_EMBEDDED = False


@pytest.fixture
def officer(db: None) -> "User":
    from tests.support.accounts import new_staff, with_totp

    return with_totp(new_staff("security officer"))
