"""Wrong configuration is found by `manage.py check`, each with its own id (contract 6)."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django.fixtures import Settings

from identity.staff import checks as staff_checks
from tests.servers.service import clean_environment, manage, service_environment
from tests.support.databases import MigratedSqlite
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
    "auth_url",
    [
        "http://127.0.0.1:8000",
        "https://identity.example.org",
        "https://IDENTITY.example.org:8443/a/b",
        "http://[::1]:8000",
    ],
)
def test_a_right_auth_url(auth_url: str, settings: Settings) -> None:
    settings.AUTH_URL = auth_url
    assert found() == []


@pytest.mark.parametrize(
    ("setting", "value", "ids"),
    [
        ("AUTH_URL", "", ["E001"]),
        ("AUTH_URL", "identity.example.org", ["E001"]),
        ("AUTH_URL", "//identity.example.org", ["E001"]),
        ("AUTH_URL", "/connect", ["E001"]),
        ("AUTH_URL", "ftp://identity.example.org", ["E001"]),
        ("AUTH_URL", "https://", ["E001", "E002"]),
        ("AUTH_URL", "https://[::1", ["E001"]),
        ("AUTH_URL", "https://user@identity.example.org", ["E001"]),
        ("AUTH_URL", "https://identity.example.org:port", ["E001"]),
        ("AUTH_URL", "https://identity.example.org/a b", ["E001"]),
        ("AUTH_URL", " https://identity.example.org", ["E001"]),
        ("AUTH_URL", "https://identity.example.org/", ["E002"]),
        ("AUTH_URL", "https://identity.example.org/a/", ["E002"]),
        ("AUTH_URL", "https://identity.example.org?a=b", ["E003"]),
        ("AUTH_URL", "https://identity.example.org#a", ["E003"]),
        ("TIN_PATTERN", "[A-Z", ["E004"]),
        ("ROB_PATTERN", "(", ["E004"]),
        ("SCOPES", {}, ["E006"]),
        ("SCOPES", ["InvoicingAPI"], ["E006"]),
        ("SCOPES", {"a b": SCOPE}, ["E007"]),
        ("SCOPES", {"": SCOPE}, ["E007"]),
        ("SCOPES", {'"': SCOPE}, ["E007"]),
        ("SCOPES", {"\\": SCOPE}, ["E007"]),
        ("SCOPES", {"ä": SCOPE}, ["E007"]),
        ("SCOPES", {"A": {}}, ["E008"]),
        ("SCOPES", {"A": "a"}, ["E008"]),
        ("SCOPES", {"A": {"description": "d"}}, ["E008"]),
        ("SCOPES", {"A": {"audience": "a", "description": ""}}, ["E008"]),
        ("SCOPES", {"A": {"audience": ["a"], "description": "d"}}, ["E008"]),
        ("SCOPES", {"A": SCOPE, "a b": {}}, ["E007", "E008"]),
        ("SCOPES", {"A" * 128: SCOPE, "B" * 127: SCOPE}, ["E009"]),
        ("SIGNING_ALGORITHM", "HS256", ["E010"]),
        ("SIGNING_ALGORITHM", "none", ["E010"]),
        ("SIGNING_ALGORITHM", "es256", ["E010"]),
        ("KEY_ENCRYPTION_KEYS", [KEY[1:]], ["E011"]),
        ("KEY_ENCRYPTION_KEYS", [KEY, ""], ["E011"]),
        ("TRUSTED_PROXIES", ["proxy.example.org"], ["E012"]),
        ("TRUSTED_PROXIES", ["10.0.0.0/33", "10.0.0.1", "::g"], ["E012", "E012"]),
        ("WRONG_SETTINGS", ["one", "another"], ["E013", "E013"]),
        ("BIND", "", ["E014"]),
        ("BIND", "127.0.0.1:8000", ["E014"]),
        ("BIND", "300.0.0.1", ["E014"]),
        ("BIND", "http://localhost", ["E014"]),
        ("BIND", "[::1]", ["E014"]),
        ("BIND", "local host", ["E014"]),
        ("MTLS_URL", "http://mtls.example.org", ["E015", "E016"]),
        ("MTLS_URL", "mtls.example.org", ["E015", "E016"]),
        ("MTLS_URL", "https://mtls.example.org/", ["E015", "E016"]),
        ("MTLS_URL", "https://mtls.example.org/a/", ["E015", "E016"]),
        ("MTLS_URL", "https://mtls.example.org?a=b", ["E015", "E016"]),
        ("MTLS_URL", "https://mtls.example.org", ["E016"]),  # no proxy is trusted
    ],
)
def test_a_wrong_setting_is_named(
    setting: str, value: Any, ids: list[str], settings: Settings
) -> None:
    setattr(settings, setting, value)
    assert found() == [f"tokens.{id_}" for id_ in ids]


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


@pytest.mark.parametrize("path", ["", ":8443", "/a", "/a/b"])
def test_a_right_address_for_certificates(path: str, settings: Settings) -> None:
    settings.MTLS_URL, settings.TRUSTED_PROXIES = f"https://mtls.example.org{path}", ["10.0.0.5"]
    assert found() == []


@pytest.mark.parametrize("bind", ["127.0.0.1", "10.0.0.5", "::1", "::", "localhost", "id-1.lan"])
def test_a_right_address_to_listen_on(bind: str, settings: Settings) -> None:
    settings.BIND = bind
    assert found() == []


# Of each setting that is a number: the smallest, the greatest, and what its check says of others.
NUMBERS = {
    "PORT": (0, 65_535),
    "WEB_PROCESSES": (1, 256),
    "WEB_THREADS": (1, 256),
    "WEB_REQUESTS": (1, 100_000),
    "WEB_CONNECTIONS": (1, 1_000_000),
    "SECRET_LIFETIME_DAYS": (1, 36_500),
    "LOCAL_FACTS_MEGABYTES": (1, 1_000_000),
    "SESSION_IDLE_MINUTES": (1, 1440),
    "SESSION_LONGEST_HOURS": (1, 720),
}


@pytest.mark.processes
@pytest.mark.parametrize("wrong", ["abc", "-1", "1.5", "9999999", "9" * 5000, "\u0663"])
def test_every_number_that_is_none_is_named_with_its_range(wrong: str) -> None:
    environment = {**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"]}
    with pytest.raises(RuntimeError) as error:
        manage(environment | dict.fromkeys(NUMBERS, wrong), "check")
    report = str(error.value)
    assert report.count("(tokens.E013)") == len(NUMBERS)
    for name, (least, most) in NUMBERS.items():
        line = f"{name} must be a whole number from {least} to {most}, not {wrong!r}."
        assert f"(tokens.E013) {line}" in report


@pytest.mark.processes
@pytest.mark.parametrize("end", [0, 1], ids=["smallest", "greatest"])
def test_every_number_in_its_range_is_right(end: int) -> None:
    environment = {**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"]}
    manage(environment | {name: str(ends[end]) for name, ends in NUMBERS.items()}, "check")


@pytest.mark.processes
def test_a_command_for_operators_works_whatever_the_server_would_say(
    tmp_path: Path, migrated_sqlite: MigratedSqlite
) -> None:
    environment = service_environment(tmp_path, 0, WEB_PROCESSES="abc")
    migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
    manage(environment, "register_taxpayer", "C1234567890", "--name", "Acme")


@pytest.mark.parametrize(
    "pattern",
    [
        "[A-Z0-9]{5,20}",
        r"\d{10,14}",
        r"(?:C|IG)\d{9,11}",
        "[A-Z]{1,2}[0-9]{5,}",
        r"(?!0+)[0-9]{10}",
        r"[A-Z0-9\-/.]{5,20}",
        r"\w{5}",
        "[]A-Z]{5}",
    ],
)
def test_a_pattern_that_names_its_characters_is_right(pattern: str, settings: Settings) -> None:
    settings.TIN_PATTERN = settings.ROB_PATTERN = pattern
    assert found() == []


@pytest.mark.parametrize(
    "pattern",
    [
        ".{5,20}",
        ".*",
        r"\S+",
        r"\D",
        r"\W",
        "[^ ]{5,20}",
        "[A-Z0-9:]{5,20}",
        "[A-Z0-9,]{5,20}",
        "[ -~]{5,20}",
        "[+-;]{5}",
        r"[\D]{5}",
        r"\d{5}(:\d+)?",
        r"\d{5}|\d,\d",
        r"A\:B",
        "[]:]",
    ],
)
def test_a_pattern_that_admits_a_separator_is_named(pattern: str, settings: Settings) -> None:
    settings.ROB_PATTERN = pattern
    assert found() == ["tokens.E005"]


def test_plain_http_is_right_here_and_a_warning_in_production(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["identity.example.org"]
    settings.AUTH_URL = "http://identity.example.org"
    assert found() == []
    assert [message.id for message in check_deployment()] == ["tokens.W001"]
    settings.AUTH_URL, settings.TRUSTED_PROXIES = "https://identity.example.org", ["10.0.0.5"]
    assert check_deployment() == []


def test_https_that_nobody_is_believed_to_have_ended_is_a_warning(settings: Settings) -> None:
    settings.AUTH_URL, settings.TRUSTED_PROXIES = "https://identity.example.org", []
    settings.ALLOWED_HOSTS = ["identity.example.org"]
    assert [message.id for message in check_deployment()] == ["tokens.W002"]


def production(**changes: str | None) -> dict[str, str]:
    """The environment of a production as documented, but for these; None: left out."""
    settings = {**PRODUCTION, **changes}
    given = {name: value for name, value in settings.items() if value is not None}
    return {**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"], **given}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"TRUSTED_PROXIES": None}, "tokens.W002"),
        ({"DATABASE_URL": None}, "there is no DATABASE_URL"),
        ({"DATABASE_URL": None, "ENVIRONMENT": "test"}, "tokens.W004"),
        ({"ALLOWED_HOSTS": "*"}, "tokens.W004"),
        ({"ALLOWED_HOSTS": "staff.id.example.org"}, "tokens.W005"),
        ({"TRUSTED_PROXIES": "10.0.0.5,0.0.0.0/0"}, "tokens.W006"),
        ({"STAFF_URL": "staff.id.example.org"}, "staff.E001"),
        ({"SERVE": "both"}, "staff.W001"),
        ({"STAFF_URL": None}, "staff.W002"),
        ({"ALLOWED_HOSTS": "id.example.org"}, "staff.W003"),
        ({"STAFF_URL": "http://staff.id.example.org"}, "staff.W004"),
        ({"HSTS_PRELOAD": "1"}, "staff.W005"),
        ({"SECOND_PERSON_REQUIRED": "False"}, "staff.W006"),
        ({"HSTS_PRELOAD": "1", "HSTS_INCLUDE_SUBDOMAINS": "1", "HSTS_SECONDS": "60"}, "staff.W005"),
    ],
)
def test_a_production_that_would_not_work_or_not_be_safe_is_found(
    changes: dict[str, str | None], says: str
) -> None:
    if changes.get("ENVIRONMENT") == "test":
        changes = changes | {"ALLOWED_HOSTS": None}
    with pytest.raises(RuntimeError, match=says):
        manage(production(**changes), "check", "--deploy", "--fail-level", "WARNING")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "second_factor", "hosts"),
    [
        ({}, True, ["id.example.org", "staff.id.example.org"]),
        ({"DATABASE_URL": None, "ALLOWED_HOSTS": None, "ENVIRONMENT": "test"}, False, ["*"]),
    ],
)
def test_only_a_demo_has_open_doors(
    changes: dict[str, str | None], second_factor: bool, hosts: list[str]
) -> None:
    output = manage(
        production(**changes),
        *("shell", "--no-imports", "-c"),
        "from django.conf import settings as s; print([s.SECOND_FACTOR_REQUIRED, s.ALLOWED_HOSTS])",
    )
    assert output.strip() == str([second_factor, hosts])


@pytest.mark.processes
@pytest.mark.parametrize("serve", ["login", "staff"])
def test_a_production_as_documented_passes_without_a_warning(serve: str) -> None:
    manage(production(SERVE=serve), "check", "--deploy", "--fail-level", "WARNING")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("AUTH_URL", "https://identity.example.org/", "tokens.E002"),
        ("SCOPES", '{"a b": 1}', "tokens.E007"),
        ("SCOPES", "[1]", "tokens.E006"),
    ],
)
def test_what_the_environment_says_wrong_arrives_at_the_check(
    name: str, value: str, says: str
) -> None:
    environment = {**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"], name: value}
    with pytest.raises(RuntimeError, match=says):
        manage(environment, "check")


# --- The staff pages ------------------------------------------------------------------------------


def staff_warnings() -> list[str]:
    return [str(message.id).removeprefix("staff.") for message in staff_checks.check_deployment()]


@pytest.fixture
def separate(settings: Settings) -> Settings:
    """A node for staff alone, at its own address."""
    settings.SERVE = "staff"
    settings.AUTH_URL, settings.STAFF_URL = "https://id.example.org", "https://staff.example.org"
    settings.ALLOWED_HOSTS = ["id.example.org", "staff.example.org"]
    assert staff_warnings() == []
    return settings


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        ("SERVE", "both", ["W001"]),
        ("STAFF_URL", "https://id.example.org", ["W002"]),
        ("STAFF_URL", "https://ID.example.org:8443/x", ["W002"]),
        ("ALLOWED_HOSTS", ["id.example.org"], ["W003"]),
        ("ALLOWED_HOSTS", [], ["W003"]),
        ("ALLOWED_HOSTS", [".example.org"], []),
        ("STAFF_URL", "http://staff.example.org", ["W004"]),
        ("SECURE_HSTS_PRELOAD", True, ["W005"]),
    ],
)
def test_staff_pages_that_are_public_or_cannot_be_opened_are_named(
    separate: Settings, name: str, value: Any, ids: list[str]
) -> None:
    setattr(separate, name, value)
    assert staff_warnings() == ids


def test_a_live_service_without_a_second_person_is_named(separate: Settings) -> None:
    assert separate.SECOND_PERSON_REQUIRED is False  # as always in `test`
    separate.ENVIRONMENT = "live"
    assert staff_warnings() == ["W006"]
    separate.SECOND_PERSON_REQUIRED = True
    assert staff_warnings() == []


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


def test_the_list_of_browsers_asks_for_a_year_and_every_subdomain(separate: Settings) -> None:
    separate.SECURE_HSTS_PRELOAD = separate.SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    separate.SECURE_HSTS_SECONDS = 31_536_000
    assert staff_warnings() == []
    separate.SECURE_HSTS_SECONDS -= 1
    assert staff_warnings() == ["W005"]


@pytest.mark.parametrize(
    "url", ["", "staff.example.org", "//staff.example.org", "https://", "https://[::1"]
)
def test_a_staff_address_that_is_none_is_an_error(separate: Settings, url: str) -> None:
    separate.STAFF_URL = url
    assert found() == ["staff.E001"]
    assert staff_warnings() == []


def test_a_login_address_that_is_not_allowed_is_named_where_it_is_served(
    separate: Settings,
) -> None:
    separate.TRUSTED_PROXIES, separate.ALLOWED_HOSTS = ["10.0.0.5"], ["staff.example.org"]
    assert check_deployment() == []
    separate.SERVE = "login"
    assert [message.id for message in check_deployment()] == ["tokens.W005"]


@pytest.mark.parametrize("proxy", ["0.0.0.0/0", "::/0", "10.0.0.5/0"])
def test_everybody_as_a_trusted_proxy_is_named(separate: Settings, proxy: str) -> None:
    separate.TRUSTED_PROXIES = ["10.0.0.0/8", proxy]
    assert [message.id for message in check_deployment()] == ["tokens.W006"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({}, "max-age=31536000"),
        ({"HSTS_SECONDS": "60"}, "max-age=60"),
        ({"HSTS_INCLUDE_SUBDOMAINS": "1"}, "max-age=31536000; includeSubDomains"),
        (
            {"HSTS_INCLUDE_SUBDOMAINS": "1", "HSTS_PRELOAD": "1"},
            "max-age=31536000; includeSubDomains; preload",
        ),
        ({"HSTS_SECONDS": "0"}, None),
        ({"AUTH_URL": "http://id.example.org"}, None),
    ],
)
def test_browsers_are_told_no_more_of_https_than_was_asked_for(
    changes: dict[str, str | None], header: str | None
) -> None:
    output = manage(
        production(SERVE="staff", **changes),
        *("shell", "--no-imports", "-c"),
        "from django.test import Client; page = Client().get('/no-such-page', secure=True,"
        " headers={'host': 'staff.id.example.org'});"
        " print(page.status_code, page.headers.get('Strict-Transport-Security'))",
    )
    assert output.strip() == f"404 {header}"
