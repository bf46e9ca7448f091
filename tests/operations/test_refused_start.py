"""What the server does not start with in `live`, and how an operator accepts one of these."""

from collections.abc import Mapping
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from identity.configuration.refused_start import faults

REMOTE = {"HOST": "db.example.org", "OPTIONS": {}}


@pytest.fixture
def live(settings: Settings) -> Settings:
    """A production as documented."""
    settings.ENVIRONMENT, settings.IS_HTTPS = "live", False
    settings.AUTH_URL, settings.STAFF_URL = "https://id.example.org", "https://staff.example.org"
    settings.ALLOWED_HOSTS = ["id.example.org", "staff.example.org"]
    settings.TRUSTED_PROXIES = ["10.0.0.5"]
    settings.SECRET_KEY = "9f3b1c5d7e2a4860-Zk2Lq8Vw5Xr1Ty7Nm3Pb6Hs0Jd4Gf9-Uc5Ie8"
    assert list(faults()) == []
    return settings


@pytest.mark.parametrize(
    ("changes", "id_"),
    [
        ({"AUTH_URL": "http://id.example.org"}, "tokens.W001"),
        ({"TRUSTED_PROXIES": []}, "tokens.W002"),
        ({"TRUSTED_PROXIES": ["0.0.0.0/0"]}, "tokens.W006"),
        ({"ALLOWED_HOSTS": ["*"]}, "tokens.W004"),
        ({"ALLOWED_HOSTS": ["staff.example.org"]}, "tokens.W005"),
        ({"MTLS_URL": "https://id.example.org", "PROXY_SECRET": ["x" * 32]}, "tokens.W008"),
        ({"SECRET_KEY": "short"}, "security.W009"),
        ({"DEBUG": True}, "security.W018"),
    ],
)
def test_a_live_server_that_is_not_safe_does_not_start(
    live: Settings, changes: Mapping[str, Any], id_: str
) -> None:
    for name, value in changes.items():
        setattr(live, name, value)
    [fault] = faults()
    assert fault.startswith(f"{id_}: ")
    live.ACCEPTED_RISKS = [id_]
    assert list(faults()) == []
    live.ENVIRONMENT, live.ACCEPTED_RISKS = "test", []
    assert list(faults()) == []  # `check --deploy` warns


@pytest.mark.parametrize(
    ("database", "is_safe"),
    [
        (REMOTE, False),
        (REMOTE | {"OPTIONS": {"sslmode": "require"}}, False),
        (REMOTE | {"OPTIONS": {"sslmode": "verify-ca"}}, True),
        (REMOTE | {"OPTIONS": {"sslmode": "verify-full"}}, True),
        ({"HOST": "127.0.0.1"}, True),
        ({"HOST": "/run/postgresql"}, True),
        ({"HOST": "10.0.0.9"}, False),
    ],
)
def test_a_remote_database_needs_verified_tls(
    live: Settings, database: dict[str, Any], is_safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ({"OPTIONS": {}} | database).items():
        monkeypatch.setitem(live.DATABASES["default"], name, value)
    assert [fault[:11] for fault in faults()] == ([] if is_safe else ["tokens.W009"])


def test_only_what_the_list_has_can_be_accepted(live: Settings) -> None:
    live.ACCEPTED_RISKS = ["tokens.E001"]
    [fault] = faults()
    assert fault.startswith("ACCEPTED_RISKS has tokens.E001: choose from security.W009, ")


def test_https_without_a_word_on_the_environment_is_asked_about(
    live: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENVIRONMENT", raising=False)
    live.IS_HTTPS, live.ENVIRONMENT = True, "test"
    assert list(faults()) == [
        "AUTH_URL is https without ENVIRONMENT: say ENVIRONMENT=live, or ENVIRONMENT=test."
    ]
