"""How the text of a setting becomes its value: each reader raises WrongValue if it cannot. Pure."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Any
from zoneinfo import ZoneInfo

_WORDS = {"1": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "false": False, "no": False, "off": False}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class WrongValue(ValueError):
    """Why a text is no value: it follows the name of the setting."""


Reader = Callable[[str], Any]


def number(least: int, most: int) -> Reader:
    """A whole number from `least` to `most`."""

    def read(text: str) -> int:
        if len(text) <= len(str(most)) and text.isascii() and text.isdigit():
            value = int(text)
            if least <= value <= most:
                return value
        raise WrongValue(f"must be a whole number from {least} to {most}, not {text!r}.")

    return read


def choice(*choices: str) -> Reader:
    """One of these texts."""

    def read(text: str) -> str:
        if text in choices:
            return text
        *others, last = choices
        raise WrongValue(f"must be {', '.join(others)} or {last}, not {text!r}.")

    return read


def duration(least: str, most: str) -> Reader:
    """A time from `least` to `most`, as `90s`, `30m`, `12h` or `400d`; None if empty."""

    def read(text: str) -> timedelta | None:
        if not text:
            return None
        value = _seconds(text)
        if _seconds(least) <= value <= _seconds(most):
            return timedelta(seconds=value)
        raise WrongValue(f"must be a time from {least} to {most}, not {text!r}.")

    return read


def _seconds(text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})([smhd])", text, re.ASCII)
    return int(match[1]) * _UNITS[match[2]] if match else -1


def _made_by(make: Callable[[str], Any], what: str) -> Reader:
    """What this function makes of a text; if it cannot, the text must be `what`."""

    def read(text: str) -> Any:
        try:
            return make(text)
        except (ValueError, OSError, KeyError):
            raise WrongValue(f"must be {what}, not {text!r}.") from None

    return read


def _share(text: str) -> float:
    if re.fullmatch(r"0|1|[01]?\.\d{1,9}", text, re.ASCII) and float(text) <= 1:
        return float(text)
    raise ValueError(text)


def texts(text: str) -> list[str]:
    """Those that commas separate."""
    return [part for part in map(str.strip, text.split(",")) if part]


def networks(text: str) -> list[str]:
    """Addresses and networks, separated by commas."""
    try:
        return [str(ip_network(part)) for part in texts(text)]
    except ValueError as error:
        raise WrongValue(f"must be networks, separated by commas: {error}.") from None


def collector(text: str) -> str:
    """The address of a collector of traces, where what sends them is installed."""
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


FLAG = _made_by(lambda text: _WORDS[text.lower()], "True or False")
SHARE = _made_by(_share, "a number from 0 to 1")
JSON = _made_by(json.loads, "JSON")
TIME_ZONE = _made_by(lambda text: ZoneInfo(text).key, "the name of a time zone")
