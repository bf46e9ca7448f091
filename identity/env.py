"""Where settings come from: the environment, files named by `…_FILE`, and `var/` (contract 6)."""

import os
import re
import secrets
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvError

from identity.configuration.setting_list import SETTINGS
from identity.configuration.unknown_names import describe_unknown_names

env = Env()

# One line for each setting that has a wrong value: `manage.py check` shows them all, and the server
# does not start. Other commands go on with the default.
wrong_settings: list[str] = []
# And for each name that is none, but looks like one: `check --deploy` and the server name it.
unknown_settings = describe_unknown_names(os.environ, SETTINGS)


def whole_number(name: str, default: int, *, most: int, least: int = 1) -> int:
    """The number `name`; for anything but `least` to `most` the default, and a wrong setting."""
    text = env.str(name, "") or str(default)
    if len(text) <= len(str(most)) and text.isascii() and text.isdigit():
        number = int(text)
        if least <= number <= most:
            return number
    _wrong(name, f"must be a whole number from {least} to {most}, not {text!r}.")
    return default


def share(name: str, default: float) -> float:
    """The number `name`, from 0 to 1; for anything else the default, and a wrong setting."""
    text = env.str(name, "") or str(default)
    if re.fullmatch(r"0|1|[01]?\.\d{1,9}", text, re.ASCII) and float(text) <= 1:
        return float(text)
    _wrong(name, f"must be a number from 0 to 1, not {text!r}.")
    return default


def collector(name: str) -> str:
    """The address `name` to which OpenTelemetry can send from here.

    Empty if none is given; for anything else, or without its libraries, also a wrong setting.
    """
    text = env.str(name, "")
    if text and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", text):
        _wrong(name, f"must be the http or https address of a collector, not {text!r}.")
        return ""
    if text and not _is_installed("opentelemetry.exporter.otlp.proto.http"):
        _wrong(name, "needs OpenTelemetry: install requirements-traces.txt, or remove it.")
        return ""
    return text


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is what it is a part of
        return False


def networks(name: str) -> list[str]:
    """The networks `name`, comma-separated; what is none is left out, and a wrong setting."""
    found = []
    for text in filter(None, map(str.strip, env.str(name, "").split(","))):
        try:
            found.append(str(ip_network(text)))
        except ValueError:
            _wrong(name, f"must be networks, separated by commas; {text!r} is none.")
    return found


def flag(name: str, default: bool) -> bool:
    """Whether `name` is on; for anything but yes or no the default, and a wrong setting."""
    try:
        return env.bool(name, default)
    except EnvError:
        _wrong(name, f"must be True or False, not {os.environ[name]!r}.")
        return default


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    """One of `choices`; for anything else the default, and a wrong setting."""
    text = env.str(name, "") or default
    if text in choices:
        return text
    _wrong(name, f"must be {_any_of(choices)}, not {text!r}.")
    return default


def required_choice(name: str, default: str, choices: Sequence[str]) -> str:
    """As `choice`, where to go on with the default would be dangerous: ImproperlyConfigured."""
    text = env.str(name, default)
    if text not in choices:
        fault = f"must be {_any_of(choices)}, not {text!r}."
        raise ImproperlyConfigured(_with_example(name, fault))
    return text


def time_zone(name: str, default: str) -> str:
    """The name of a time zone. Raises ImproperlyConfigured if there is none of that name."""
    text = env.str(name, "") or default
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError):
        fault = f"must be the name of a time zone, not {text!r}."
        raise ImproperlyConfigured(_with_example(name, fault)) from None
    return text


def json_value(name: str, default: Any) -> Any:
    """What the JSON in `name` holds. Raises ImproperlyConfigured if it is none."""
    try:
        return env.json(name, default)
    except EnvError:
        fault = f"must be JSON, not {os.environ[name]!r}."
        raise ImproperlyConfigured(_with_example(name, fault)) from None


def secret(name: str, default: str | None = None) -> str | None:
    """The secret `name`, or the content of the file that `<name>_FILE` names.

    Raises ImproperlyConfigured if both are given, or if the file cannot be read or is empty.
    """
    value, path = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and path:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    if path is None:
        return value or default
    if not path:
        raise ImproperlyConfigured(f"{name}_FILE is empty: name the file, or leave it out.")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}_FILE: cannot read {path}: {error.strerror}. Create it, readable by the user of"
            " the service: docs/operations.md, Install."
        ) from None
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is not a text in UTF-8.") from None
    if not text:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is empty.")
    return text


def saved_secret(path: Path) -> str:
    """A random secret, stored in the file `path` on first use and readable only by its owner.

    For the embedded start only. Of processes that start together one creates it, and all read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)  # fails if another process was first: its secret counts
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text(encoding="utf-8").strip()


def _wrong(name: str, fault: str) -> None:
    wrong_settings.append(_with_example(name, fault))


def _with_example(name: str, fault: str) -> str:
    known = SETTINGS.get(name)
    return f"{name} {fault} Example: {known.assignment}" if known else f"{name} {fault}"


def _any_of(choices: Sequence[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}"
