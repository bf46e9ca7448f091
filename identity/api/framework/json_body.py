"""Reads a JSON body strictly: one object, each name once, no NaN, no text that cannot be stored."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.parsers import BaseParser

from identity.api.framework.problems import Problem

MAX_BODY_BYTES = 64 * 1024


class JsonBody(BaseParser):
    """The parser of every change (RFC 8259)."""

    media_type = "application/json"
    most_bytes = MAX_BODY_BYTES

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Raises Problem with what is wrong with the body."""
        body = stream.read(self.most_bytes + 1)
        if len(body) > self.most_bytes:
            raise Problem("content_too_large", f"A body has at most {self.most_bytes} bytes here.")
        return read_object(body)


class MergePatchBody(JsonBody):
    """The same under the name of RFC 7396, which some clients send with PATCH."""

    media_type = "application/merge-patch+json"


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises Problem, which repeats none of them."""
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
        _check_texts(value)
    except RecursionError:
        raise _unreadable("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise _unreadable("it is not UTF-8") from None
    except json.JSONDecodeError as fault:
        raise _unreadable(f"it is no JSON (line {fault.lineno}, column {fault.colno})") from None
    except ValueError:
        raise _unreadable("a number has too many digits") from None
    if not isinstance(value, dict):
        raise _unreadable("it must be a JSON object")
    return value


def _unreadable(fault: str) -> Problem:
    return Problem("malformed_request", f"The body cannot be read: {fault}.")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            raise _unreadable("a field is there twice")
        read[name] = value
    return read


def _no_constant(name: str) -> Any:
    raise _unreadable("NaN and Infinity are no JSON")


def _check_texts(value: Any) -> None:
    """Raises Problem for a NUL and for half of a surrogate pair, which no database stores."""
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise _unreadable("a text has a NUL, or half of a surrogate pair")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(name)
            _check_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner)
