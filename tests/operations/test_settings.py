"""One list of settings: the code, `deploy/identity.env` and `manage.py settings`."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from identity.configuration.setting_list import SETTINGS
from identity.configuration.texts import ENVIRONMENT_FILE, environment_file
from identity.env import describe_unknown_names, read, wrong_settings
from tests.operations.machine import assignments
from tests.servers.processes import CHECKOUT
from tests.servers.service import clean_environment
from tests.support.command_line import json_output_of, manage, output_of

DUMP = """
import json, re
from django.conf import settings
import identity.deployment
names = sorted(name for name in dir(settings) if name.isupper())
# Without the addresses of functions in memory, which differ between processes.
values = {name: re.sub(" at 0x[0-9a-f]+", "", repr(getattr(settings, name))) for name in names}
print(json.dumps(values))
"""


def test_the_code_reads_each_of_them_and_nothing_else() -> None:
    files = (CHECKOUT / "identity").glob("*.py")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    read = re.findall(r'(?:read|_required)\("([A-Z_]+)"', text)
    assert sorted(read) == sorted(SETTINGS)


def test_the_environment_file_is_drawn_from_the_list() -> None:
    """If not: python -m identity.configuration.texts."""
    assert environment_file() == ENVIRONMENT_FILE.read_text(encoding="utf-8")


@pytest.mark.gate
@pytest.mark.processes
def test_every_example_is_right(tmp_path: Path) -> None:
    """All lines of the file at once, with files that exist, pass the checks of a production."""
    given = assignments(with_comments=True) | {"VAR_DIR": str(tmp_path / "var")}
    for name in [name for name in given if name.endswith("_FILE")]:
        file = tmp_path / name
        file.write_text("9f3b1c5d7e2a4860-Zk2Lq8Vw5Xr1Ty7Nm3Pb6Hs0Jd4Gf9-Uc5Ie8")
        given[name] = str(file)
    code, out, err = manage(
        clean_environment() | given, "check", "--deploy", "--fail-level", "WARNING"
    )
    assert code == 0, out + err


@pytest.mark.processes
def test_to_set_a_default_changes_nothing() -> None:
    def effective(**given: str) -> dict[str, str]:
        environment = {**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"], **given}
        code, out, err = manage(environment, "shell", "--no-imports", "-c", DUMP)
        assert code == 0, err
        return json.loads(out)  # type: ignore[no-any-return]

    defaults = {s.name: s.default for s in SETTINGS.values() if s.default}
    assert len(defaults) >= 18
    present, explicit = effective(), effective(**defaults)
    assert {n: v for n, v in explicit.items() if present[n] != v} == {}


# That the server says so and does not start: tests/live/test_start_and_stop.py.
def fault_of(name: str) -> str:
    try:
        read(name, "")
    except ImproperlyConfigured as fault:
        return str(fault)
    return wrong_settings.pop()


@pytest.mark.parametrize(
    ("name", "text", "must_be"),
    [
        ("WEB_PROCESSES", "abc", "a whole number from 1 to 256"),
        ("DEBUG", "maybe", "True or False"),
        ("LOG_FORMAT", "xml", "json or text"),
        ("LOG_LEVEL", "LOUD", "DEBUG, INFO, WARNING, ERROR or CRITICAL"),
        ("ENVIRONMENT", "prod", "live or test"),
        ("SERVE", "all", "login, staff or both"),
        ("TIME_ZONE", "Mars/Base", "the name of a time zone"),
        ("SCOPES", "{InvoicingAPI}", "JSON"),
        *(
            ("OTEL_TRACES_SAMPLER_ARG", text, "a number from 0 to 1")
            for text in ("2", "1.01", "-0")
        ),
        *(
            ("LOGIN_RETENTION", text, "a time from 30d to 36500d")
            for text in ("29d", "0d", "400", "-400d", "1y", "\u0664\u0660\u0660d")
        ),
    ],
)
def test_a_wrong_value_is_one_line(
    name: str, text: str, must_be: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    line = f"{name} must be {must_be}, not '{text}'. Example: {SETTINGS[name].assignment}"
    assert fault_of(name) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", "SECRET_KEY_FILE is empty: name the file, or leave it out."),
        (
            "/nowhere/key",
            "SECRET_KEY_FILE: cannot read /nowhere/key: No such file or directory. Create it,"
            " readable by the user of the service: docs/operations.md, Install.",
        ),
        ("/dev/null", "SECRET_KEY_FILE: /dev/null is empty."),
        (sys.executable, f"SECRET_KEY_FILE: {sys.executable} is not a text in UTF-8."),
    ],
)
def test_a_file_that_holds_no_secret_is_one_line(
    path: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY")
    monkeypatch.setenv("SECRET_KEY_FILE", path)
    assert fault_of("SECRET_KEY") == line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("AUTH_UR", "AUTH_UR is not a setting, and is not read. Did you mean AUTH_URL?"),
        ("ALLOWED_HOST", "ALLOWED_HOST is not a setting, and is not read."
         " Did you mean ALLOWED_HOSTS?"),
        ("TRUSTED_PROXY", "TRUSTED_PROXY is not a setting, and is not read."
         " Did you mean TRUSTED_PROXIES?"),
        ("SECRETKEY_FILE", "SECRETKEY_FILE is not a setting, and is not read."
         " Did you mean SECRET_KEY?"),
        ("AUTH_URL_FILE", "AUTH_URL_FILE is not read: only secrets can be in a file."
         " Set AUTH_URL instead."),
    ],
)  # fmt: skip
def test_a_name_that_was_meant_as_a_setting_is_named(name: str, line: str) -> None:
    """That the check says so: tests/test_checks.py."""
    assert describe_unknown_names([name], SETTINGS) == [line]


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LANG", "PORTS", "SERVER", "SCOPE", "USER", "LOGNAME", "HOSTNAME"),
        *("DATABASE_HOST", "KUBERNETES_SERVICE_PORT", "INVOCATION_ID", "JOURNAL_STREAM"),
        *("DEBUGGER", "LS_COLORS", "WEB_CONCURRENCY", "DJANGO_SETTINGS_MODULE", "PGTIMEZONE"),
        *SETTINGS,
        *("SECRET_KEY_FILE", "SECRET_KEY_FALLBACKS_FILE", "DATABASE_URL_FILE"),
    ],
)
def test_names_of_others_are_left_alone(name: str) -> None:
    assert describe_unknown_names([name], SETTINGS) == []


def test_the_command_shows_each_setting_with_its_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SECRET_KEY")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("DATABASE_URL", "postgresql://identity:hush@db/identity")
    monkeypatch.setenv("WEB_PROCESSES", "7")
    monkeypatch.delenv("WEB_THREADS", raising=False)
    shown = {row["name"]: row for row in json_output_of("settings")["settings"]}
    assert shown.keys() == SETTINGS.keys()
    sources = {name: (row["value"], row["source"]) for name, row in shown.items()}
    assert sources["WEB_PROCESSES"] == ("7", "environment")
    assert sources["WEB_THREADS"] == ("4", "default")
    assert sources["SECRET_KEY"] == ("(hidden)", f"file {tmp_path / 'key'}")
    assert sources["DATABASE_URL"] == ("(hidden)", "environment")


def test_the_command_never_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [setting.name for setting in SETTINGS.values() if setting.is_secret]
    assert len(names) >= 4
    for name in names:
        monkeypatch.setenv(name, f"hush-{name}")
    assert "hush" not in output_of("settings") + json.dumps(json_output_of("settings"))


def test_the_command_names_what_is_wrong(settings: Settings) -> None:
    settings.WRONG_SETTINGS, settings.UNKNOWN_SETTINGS = ["one"], ["another"]
    assert json_output_of("settings")["wrong"] == ["one", "another"]
    assert re.findall(r"(?m)^WRONG: (.*)$", output_of("settings")) == ["one", "another"]
