"""The values that commands take: taxpayers, dates, files, names of certificates (contract 6)."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from taxpayers.certificates.names import NameKind
from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.moments import end_of_day, parse_moment, start_of_day
from taxpayers.validation import taxpayer_notation

NEVER = "never"


def parse_taxpayer_id(text: str) -> TaxpayerId:
    """`TIN` or `TIN:ROB`, as in the header `onbehalfof`."""
    try:
        return taxpayer_notation().parse(text)
    except MalformedIdentifier as fault:
        raise ArgumentTypeError(f"{text!r} is not a taxpayer identifier: {fault}.") from None


def add_tin_and_rob(parser: CommandParser) -> None:
    """`TIN [--rob ROB]`, or `TIN:ROB`; read it with `read_tin_and_rob`."""
    parser.add_argument("tin", metavar="TIN", help="tax identification number, or TIN:ROB")
    parser.add_argument("--rob", default="", help="ROB number, if the taxpayer has one")


def read_tin_and_rob(options: dict[str, Any]) -> TaxpayerId:
    """The taxpayer named by `add_tin_and_rob`. Raises CommandError if it is malformed."""
    tin, rob = options["tin"].strip(), options["rob"].strip()
    try:
        return taxpayer_notation().parse_parts(tin, rob) if rob else taxpayer_notation().parse(tin)
    except MalformedIdentifier as fault:
        text = f"This is not a taxpayer identifier: {fault}."
        raise CommandError(text, returncode=2) from None


def add_taxpayer_and_intermediary(parser: CommandParser) -> None:
    """`--taxpayer TIN[:ROB] --intermediary TIN[:ROB]`."""
    for name, who in (("taxpayer", "who permits"), ("intermediary", "who may act for it")):
        parser.add_argument(
            f"--{name}", metavar="TIN[:ROB]", type=parse_taxpayer_id, required=True, help=who
        )


def add_end(parser: CommandParser, option: str, service_name: str, text: str) -> None:
    """An option with a last moment, under the name that the service has for it."""
    parser.add_argument(option, dest=service_name, metavar="DATE", type=parse_end, help=text)


def parse_start(text: str) -> datetime:
    """A moment, or the first one of a whole day in the authority's time zone; in UTC."""
    return _parse(text, start_of_day)


def parse_end(text: str) -> datetime:
    """A moment, or the last one of a whole day in the authority's time zone; in UTC."""
    return _parse(text, end_of_day)


def parse_end_or_never(text: str) -> datetime | None:
    """As `parse_end`; None for `never`, which removes an end."""
    return None if text == NEVER else parse_end(text)


def read_keys(path: str) -> str:
    """The text of a file with public keys; `-` is the standard input."""
    return _read(path, MAX_KEYS_LENGTH + 1)


def lines_of(path: str) -> list[str]:
    """The lines of a file of any size, without blanks around them and empty ones."""
    return [line.strip() for line in _read(path, -1).splitlines() if line.strip()]


def _read(path: str, length: int) -> str:
    try:
        if path == "-":
            return sys.stdin.read(length)
        with Path(path).open(encoding="utf-8") as file:
            return file.read(length)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise ArgumentTypeError(f"{path!r} cannot be read: {reason}.") from None


def _parse(text: str, of_day: Callable[[date], datetime]) -> datetime:
    try:
        return parse_moment(text, of_day)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is not a date. Write 2027-12-31, 2027-12-31T18:00 (in {settings.TIME_ZONE})"
            " or 2027-12-31T10:00Z."
        ) from None


_FILE = "certificate"
_OPTIONS = {
    "subject_dn": (NameKind.SUBJECT_DN, "DN", "its subject, as RFC 4514 writes it"),
    "san_dns": (NameKind.SAN_DNS, "HOST", "a DNS name in it"),
    "san_uri": (NameKind.SAN_URI, "URI", "a URI in it"),
    "san_email": (NameKind.SAN_EMAIL, "ADDRESS", "an e-mail address in it"),
}


def add_certificate_name(parser: CommandParser, *, required: bool) -> None:
    """One of `--certificate FILE`, `--subject-dn`, `--san-dns`, `--san-uri` and `--san-email`."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        f"--{_FILE}",
        metavar="FILE",
        type=read_keys,
        help="a certificate of the ERP system (PEM; -: stdin): its subject is registered",
    )
    for option, (_kind, metavar, text) in _OPTIONS.items():
        group.add_argument(f"--{option.replace('_', '-')}", metavar=metavar, help=text)


def certificate_name(options: dict[str, Any]) -> dict[str, Any]:
    """Its `text` and `kind`, as services take them; empty: none was given."""
    if options[_FILE] is not None:
        return {"text": options[_FILE], "kind": None}
    for option, (kind, _metavar, _text) in _OPTIONS.items():
        if options[option] is not None:
            return {"text": options[option], "kind": kind}
    return {}
