"""The values and options that several commands take (contract 6)."""

import sys
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Collection
from datetime import date, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.models import Credential, SystemUser
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


def add_limit_options(parser: CommandParser) -> None:
    """`--only-permission`, `--only-taxpayer` and `--only-on-behalf`; `read_limit` reads them."""
    parser.add_argument(
        "--only-permission",
        metavar="CODE",
        nargs="+",
        action="extend",
        default=SUPPRESS,
        help="on behalf of others it gets these permissions at most, and only what was granted",
    )
    parser.add_argument(
        "--only-taxpayer",
        metavar="TIN[:ROB]",
        nargs="+",
        action="extend",
        type=parse_taxpayer_id,
        default=SUPPRESS,
        help="it may act for these taxpayers only, and only if they grant it",
    )
    parser.add_argument(
        "--only-on-behalf",
        action="store_true",
        help="each login must name another taxpayer in the header onbehalfof: it gets no token for"
        " its own one",
    )


def read_limit(options: dict[str, Any], present: SystemUser | None = None) -> dict[str, Any]:
    """For `limit_system_user`; what is not given stays as it is with `present`."""
    permissions: Collection[str] = present.allowed_permissions.split() if present else ()
    names = present.allowed_taxpayers.split() if present else ()
    taxpayers = [taxpayer_notation().parse(name) for name in names]
    return {
        "permissions": options.get("only_permission", permissions),
        "taxpayers": options.get("only_taxpayer", taxpayers),
        "only_on_behalf": options["only_on_behalf"] or bool(present and present.only_on_behalf),
    }


def limit_data(row: SystemUser) -> dict[str, Any]:
    """For machines; empty lists: it is not limited."""
    return {
        "allowed_permissions": row.allowed_permissions.split(),
        "allowed_taxpayers": row.allowed_taxpayers.split(),
        "only_on_behalf": row.only_on_behalf,
    }


def limit_text(row: SystemUser) -> str:
    """One to three sentences, each with a blank before it; empty if it is not limited."""
    text = ""
    if row.allowed_permissions:
        text += f" On behalf of others it gets at most {row.allowed_permissions}."
    if row.allowed_taxpayers:
        text += f" It may act for {row.allowed_taxpayers} only."
    return text + (" It gets no token for its own taxpayer." if row.is_limited else "")


def add_network_options(
    parser: CommandParser, present: str = "", *, required: bool = False
) -> None:
    """`--from-network NETWORK…` or `--from-anywhere`: `allowed_networks`; None: neither."""
    either = parser.add_mutually_exclusive_group(required=required)
    either.add_argument(
        "--from-network",
        dest="allowed_networks",
        metavar="NETWORK",
        nargs="+",
        action="extend",
        help="it may be used from these networks only: 203.0.113.0/24, 2001:db8::/32, or a single"
        f" address{present}",
    )
    either.add_argument(
        "--from-anywhere",
        dest="allowed_networks",
        action="store_const",
        const=(),
        help="it may be used from any address",
    )


def networks_text(secret: Credential) -> str:
    """From where it may be used, to end a sentence."""
    networks = ", ".join(secret.allowed_networks.split())
    return f"from {networks} only" if networks else "from anywhere"
