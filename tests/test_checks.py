"""Wrong configuration is found by `manage.py check`, each with its own id (contract 6)."""

import os
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django.fixtures import Settings

from identity.staff import checks as staff_checks
from tests.servers.service import clean_environment, manage
from tokens.checks import check_deployment, check_settings

SCOPE = {"description": "d", "audience": "a"}
KEY = "k" * 32
PRODUCTION = {
    "AUTH_URL": "https://id.example.org",
    "STAFF_URL": "https://staff.id.example.org",
    "ALLOWED_HOSTS": "id.example.org,staff.id.example.org",
    "TRUSTED_PROXIES": "10.0.0.5",
    "ENVIRONMENT": "live",
    "DATABASE_URL": "postgresql://identity@127.0.0.1:1/identity",
    "SECRET_KEY": "9f3b1c5d7e2a4860-Zk2Lq8Vw5Xr1Ty7Nm3Pb6Hs0Jd4Gf9-Uc5Ie8",
    "KEY_ENCRYPTION_KEYS": "5e8d2b7a1c9f4036-Qw8Er2Ty6Ui1Op5As9Df3Gh7Jk4Lz",
}


def found() -> list[str]:
    return [str(message.id) for message in check_settings()]


def test_the_settings_of_these_tests_are_right() -> None:
    call_command("check", fail_level="WARNING")
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("AUTH_URL", url) for url in ("http://127.0.0.1:8000", "https://id.example.org")),
        *(("AUTH_URL", url) for url in ("https://ID.example.org:8443/a/b", "http://[::1]:8000")),
        *(("MTLS_URL", f"https://m.example.org{path}") for path in ("", ":8443", "/a", "/a/b")),
        *(("BIND", bind) for bind in ("127.0.0.1", "::1", "::", "localhost", "id-1.lan")),
        # A pattern that names its characters.
        *(("TIN_PATTERN", pattern) for pattern in ("[A-Z0-9]{5,20}", r"\d{10,14}", r"\w{5}")),
        *(("TIN_PATTERN", pattern) for pattern in (r"(?:C|IG)\d{9,11}", "[A-Z]{1,2}[0-9]{5,}")),
        *(("ROB_PATTERN", pattern) for pattern in (r"(?!0+)[0-9]{10}", r"[A-Z0-9\-/.]{5,20}")),
        ("ROB_PATTERN", "[]A-Z]{5}"),
    ],
)
def test_a_right_setting(name: str, value: str, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.5"]
    setattr(settings, name, value)
    assert found() == []


WRONG: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("AUTH_URL", ("", "x.example.org", "//x.example.org", "/a", "ftp://x", "https://[::1"), "E001"),
    ("AUTH_URL", ("https://user@x", "https://x:port", "https://x/a b", " https://x"), "E001"),
    ("AUTH_URL", ("https://",), "E001 E002"),
    ("AUTH_URL", ("https://x.example.org/", "https://x.example.org/a/"), "E002"),
    ("AUTH_URL", ("https://x.example.org?a=b", "https://x.example.org#a"), "E003"),
    ("TIN_PATTERN", ("[A-Z",), "E004"),
    ("ROB_PATTERN", ("(",), "E004"),
    ("SCOPES", ({}, ["InvoicingAPI"]), "E006"),
    ("SCOPES", ({"a b": SCOPE}, {"": SCOPE}, {'"': SCOPE}, {"\\": SCOPE}, {"ä": SCOPE}), "E007"),
    ("SCOPES", ({"A": {}}, {"A": "a"}, {"A": {"description": "d"}}), "E008"),
    ("SCOPES", ({"A": {"audience": "a", "description": ""}},), "E008"),
    ("SCOPES", ({"A": {"audience": ["a"], "description": "d"}},), "E008"),
    ("SCOPES", ({"A": SCOPE, "a b": {}},), "E007 E008"),
    ("SCOPES", ({"A" * 128: SCOPE, "B" * 127: SCOPE},), "E009"),
    ("SIGNING_ALGORITHM", ("HS256", "none", "es256"), "E010"),
    ("KEY_ENCRYPTION_KEYS", ([KEY[1:]], [KEY, ""]), "E011"),
    ("TRUSTED_PROXIES", (["proxy.example.org"],), "E012"),
    ("TRUSTED_PROXIES", (["10.0.0.0/33", "10.0.0.1", "::g"],), "E012 E012"),
    ("WRONG_SETTINGS", (["one", "another"],), "E013 E013"),
    ("BIND", ("", "127.0.0.1:80", "300.0.0.1", "http://localhost", "[::1]", "a b"), "E014"),
    ("MTLS_URL", ("http://m.example.org", "m.example.org", "https://m.example.org/"), "E015 E016"),
    ("MTLS_URL", ("https://m.example.org/a/", "https://m.example.org?a=b"), "E015 E016"),
    ("MTLS_URL", ("https://m.example.org",), "E016"),  # no proxy is trusted
    ("ROB_PATTERN", (".{5,20}", ".*", r"\S+", r"\D", r"\W", "[^ ]{5}", "[A-Z0-9:]{5}"), "E005"),
    ("ROB_PATTERN", ("[A-Z0-9,]{5,20}", "[ -~]{5,20}", "[+-;]{5}", r"[\D]{5}"), "E005"),
    ("ROB_PATTERN", (r"\d{5}(:\d+)?", r"\d{5}|\d,\d", r"A\:B", "[]:]"), "E005"),
)


@pytest.mark.parametrize(
    ("setting", "value", "ids"),
    [(setting, value, ids) for setting, values, ids in WRONG for value in values],
)
def test_a_wrong_setting_is_named(setting: str, value: Any, ids: str, settings: Settings) -> None:
    setattr(settings, setting, value)
    assert found() == [f"tokens.{id_}" for id_ in ids.split()]


@pytest.mark.parametrize(
    ("secrets", "ids"),
    [
        ([], ["tokens.E018"]),
        (["x" * 31], ["tokens.E019"]),
        (["x" * 32, 'y" ' * 20], ["tokens.E019"]),
        (["x" * 32], []),
    ],
)
def test_certificates_in_live_need_a_secret_of_proxy_and_node(
    secrets: list[str], ids: list[str], settings: Settings
) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = "https://mtls.example.org", ["10.0.0.5"]
    settings.ENVIRONMENT, settings.PROXY_SECRET = "live", secrets
    assert found() == ids


@pytest.mark.parametrize(
    ("url", "proxies", "ids"),
    [
        ("http://identity.example.org", [], ["tokens.W001"]),  # right in tests
        ("https://identity.example.org", ["10.0.0.5"], []),
        ("https://identity.example.org", [], ["tokens.W002"]),
        *(
            ("https://identity.example.org", ["10.0.0.0/8", everything], ["tokens.W006"])
            for everything in ("0.0.0.0/0", "::/0", "10.0.0.5/0")
        ),
    ],
)
def test_a_production_without_https_or_without_a_known_proxy_is_a_warning(
    url: str, proxies: list[str], ids: list[str], settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["identity.example.org"]
    settings.AUTH_URL, settings.TRUSTED_PROXIES = url, proxies
    assert found() == []
    assert [message.id for message in check_deployment()] == ids


def production(**changes: str | None) -> dict[str, str]:
    """The environment of a production as documented, but for these; None: left out."""
    given = {"VAR_DIR": os.environ["VAR_DIR"], **PRODUCTION, **changes}
    return clean_environment() | {name: value for name, value in given.items() if value is not None}


# Several at once: one process for each row. What each check finds is tested in process, and that it
# finds nothing in a production as documented in tests/operations/.
@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        (
            {"TRUSTED_PROXIES": None, "SERVE": "both", "SECOND_PERSON_REQUIRED": "False"}
            | {"STAFF_URL": "http://staff.id.example.org", "ALLOWED_HOSTS": "other.example.org"},
            "tokens.W002 tokens.W005 staff.W001 staff.W003 staff.W004 staff.W006",
        ),
        (
            {"TRUSTED_PROXIES": "10.0.0.5,0.0.0.0/0", "ALLOWED_HOSTS": "*", "STAFF_URL": None}
            | {"AUTH_UR": "x"},
            "tokens.W004 tokens.W006 tokens.W007 staff.W002",
        ),
        (
            {"AUTH_URL": "https://id.example.org/", "SCOPES": '{"a b": 1}'}
            | {"STAFF_URL": "staff.id.example.org"},
            "tokens.E002 tokens.E007 tokens.E008 staff.E001",
        ),
        ({"DATABASE_URL": None}, "DATABASE_URL."),
    ],
)
def test_a_production_that_would_not_work_or_not_be_safe_is_found(
    changes: dict[str, str | None], ids: str
) -> None:
    with pytest.raises(RuntimeError) as error:
        manage(production(**changes), "check", "--deploy", "--fail-level", "WARNING")
    assert set(ids.split()) <= set(re.findall(r"[\w.]+", str(error.value)))


# What the settings make of the environment: of each, the second step, the hosts, and what browsers
# are told of HTTPS.
SHOWN = """
from django.conf import settings as s
from django.test import Client
page = Client().get("/no-such-page", secure=True, headers={"host": "staff.id.example.org"})
hsts = page.headers.get("Strict-Transport-Security")
print([s.SECOND_FACTOR_REQUIRED, s.ALLOWED_HOSTS, page.status_code, hsts])
"""

HOSTS, YEAR = PRODUCTION["ALLOWED_HOSTS"].split(","), "max-age=31536000"


def assert_shown(changes: dict[str, str | None], *shown: object) -> None:
    output = manage(production(**changes), "shell", "--no-imports", "-c", SHOWN)
    assert output.strip() == str([*shown])


@pytest.mark.processes
def test_only_a_demo_has_open_doors() -> None:
    assert_shown({"ALLOWED_HOSTS": None}, True, [], 400, YEAR)
    demo = {"DATABASE_URL": None, "ALLOWED_HOSTS": None, "ENVIRONMENT": "test"}
    assert_shown(demo, False, ["*"], 404, YEAR)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({"HSTS_SECONDS": "60"}, "max-age=60"),
        ({"HSTS_SECONDS": "0"}, None),
        ({"AUTH_URL": "http://id.example.org"}, None),
    ],
)
def test_browsers_are_told_no_more_of_https_than_was_asked_for(
    changes: dict[str, str | None], header: str | None
) -> None:
    assert_shown(changes | {"SERVE": "staff"}, True, HOSTS, 404, header)


def staff_warnings() -> list[str]:
    return [str(message.id).removeprefix("staff.") for message in staff_checks.check_deployment()]


@pytest.fixture
def separate(settings: Settings) -> Settings:
    """A node only for staff, at its own address."""
    settings.SERVE = "staff"
    settings.AUTH_URL, settings.STAFF_URL = "https://id.example.org", "https://staff.example.org"
    settings.ALLOWED_HOSTS = ["id.example.org", "staff.example.org"]
    assert staff_warnings() == []
    return settings


LIVE = {"ENVIRONMENT": "live"}
NO_ADDRESSES = ("", "staff.example.org", "//staff.example.org", "https://", "https://[::1")


@pytest.mark.parametrize(
    ("changes", "warnings", "errors"),
    [
        ({"SERVE": "both"}, ["W001"], []),
        *(
            ({"STAFF_URL": url}, ["W002"], [])
            for url in ("https://id.example.org", "https://ID.example.org:8443/x")
        ),
        *(({"ALLOWED_HOSTS": hosts}, ["W003"], []) for hosts in (["id.example.org"], [])),
        ({"ALLOWED_HOSTS": [".example.org"]}, [], []),
        ({"STAFF_URL": "http://staff.example.org"}, ["W004"], []),
        (LIVE | {"SECOND_PERSON_REQUIRED": False}, ["W006"], []),  # as always in `test`
        (LIVE | {"SECOND_PERSON_REQUIRED": True}, [], []),
        *(({"STAFF_URL": url}, [], ["staff.E001"]) for url in NO_ADDRESSES),
    ],
)
def test_staff_pages_that_are_public_or_cannot_be_opened_are_named(
    separate: Settings, changes: dict[str, Any], warnings: list[str], errors: list[str]
) -> None:
    for name, value in changes.items():
        setattr(separate, name, value)
    assert (staff_warnings(), found()) == (warnings, errors)


@pytest.mark.django_db
def test_active_superusers_are_named_in_live(settings: Settings) -> None:
    for name in ("boss", "admin", "left"):
        User.objects.create_superuser(name)
    User.objects.filter(username="left").update(is_active=False)
    assert staff_checks.check_accounts() == []
    settings.ENVIRONMENT = "live"
    [warning] = staff_checks.check_accounts()
    assert (warning.id, "(2): admin, boss." in warning.msg) == ("staff.W007", True)
    User.objects.update(is_superuser=False)
    assert staff_checks.check_accounts() == []
