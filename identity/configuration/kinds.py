"""The kinds of settings: how the text in the environment becomes a value. Pure."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Any
from zoneinfo import ZoneInfo

_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class WrongValue(ValueError):
    """Why a text is no value of this kind: it follows the name of the setting."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`read` makes a value of a text, or raises WrongValue."""

    read: Callable[[str], Any] = field(repr=False)
    # Nothing starts with a wrong value, no command either: the default would be dangerous.
    is_vital: bool = False
    # Never shown, and can be in a file that <name>_FILE names.
    is_secret: bool = False


def number(least: int, most: int) -> Kind:
    """A whole number from `least` to `most`."""

    def read(text: str) -> int:
        if len(text) <= len(str(most)) and text.isascii() and text.isdigit():
            value = int(text)
            if least <= value <= most:
                return value
        raise WrongValue(f"must be a whole number from {least} to {most}, not {text!r}.")

    return Kind(read)


def choice(*choices: str) -> Kind:
    """One of these texts."""

    def read(text: str) -> str:
        if text in choices:
            return text
        *others, last = choices
        raise WrongValue(f"must be {', '.join(others)} or {last}, not {text!r}.")

    return Kind(read)


def duration(least: str, most: str) -> Kind:
    """A time from `least` to `most`, as `90s`, `30m`, `12h` or `400d`; None if empty."""

    def read(text: str) -> timedelta | None:
        if not text:
            return None
        value = _seconds(text)
        if _seconds(least) <= value <= _seconds(most):
            return timedelta(seconds=value)
        raise WrongValue(f"must be a time from {least} to {most}, not {text!r}.")

    return Kind(read)


def _seconds(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([smhd])", text, re.ASCII)
    return int(match[1]) * _UNITS[match[2]] if match else -1


def vital(kind: Kind) -> Kind:
    """The same kind, where a wrong value stops every command."""
    return replace(kind, is_vital=True)


def _made_by(make: Callable[[str], Any], what: str) -> Kind:
    """What this function makes of a text; if it cannot, the text must be `what`."""

    def read(text: str) -> Any:
        try:
            return make(text)
        except (ValueError, OSError, KeyError):
            raise WrongValue(f"must be {what}, not {text!r}.") from None

    return Kind(read)


def _share(text: str) -> float:
    if re.fullmatch(r"0|1|[01]?\.\d{1,9}", text, re.ASCII) and float(text) <= 1:
        return float(text)
    raise ValueError(text)


def _list(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(",")) if part]


def _networks(text: str) -> list[str]:
    try:
        return [str(ip_network(part)) for part in _list(text)]
    except ValueError as error:
        raise WrongValue(f"must be networks, separated by commas: {error}.") from None


def _collector(text: str) -> str:
    if not text:
        return text
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", text):
        raise WrongValue(f"must be the http or https address of a collector, not {text!r}.")
    try:
        is_installed = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # nor is what it is a part of
        is_installed = False
    if not is_installed:
        raise WrongValue("needs OpenTelemetry: install requirements-traces.txt, or remove it.")
    return text


TEXT = Kind(str)
SECRET = Kind(str, is_secret=True)
SECRETS = Kind(_list, is_secret=True)  # separated by commas
FLAG = _made_by(lambda text: _WORDS[text.lower()], "True or False")
SHARE = _made_by(_share, "a number from 0 to 1")
LIST = Kind(_list)
NETWORKS = Kind(_networks)
JSON = _made_by(json.loads, "JSON")
TIME_ZONE = _made_by(lambda text: ZoneInfo(text).key, "the name of a time zone")
COLLECTOR = Kind(_collector)
