"""The values and options that several commands take (contract 6)."""

import sys
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from taxpayers.client_keys import MAX_KEYS_LENGTH
from taxpayers.evidence import on_paper
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


# Of a field, what argparse takes; `flag` where it is not the name, and empty where there is none.
# Or what adds several options, of which only one may be given.
Field = Mapping[str, Any] | Callable[[CommandParser], None]


def day(flag: str, text: str, **more: Any) -> dict[str, Any]:
    """An option with a moment, or a day: its last moment, unless `type` is another."""
    return {"flag": flag, "metavar": "DATE", "type": parse_end, "help": text, **more}


def words(flag: str, metavar: str, text: str, **more: Any) -> dict[str, Any]:
    """An option with several values, which may be given again."""
    several = {"nargs": "+", "action": "extend"}
    return {"flag": flag, "metavar": metavar, "help": text, **several, **more}


def file(text: str, **more: Any) -> dict[str, Any]:
    """An option with a file with public keys or a certificate."""
    return {"metavar": "FILE", "type": read_keys, "help": text, **more}


_EARLIER = day("--until", "its last day", required=True)
EARLIER: Field = _EARLIER
LATER: Field = {
    **_EARLIER,
    "type": parse_end_or_never,
    "help": f"its new last day; {NEVER}: no end date",
}
PAPER_FORM: Field = {
    "flag": "--paper-form",
    "metavar": "NUMBER",
    "type": on_paper,
    "help": "the form by which the taxpayer has decided this",
}


def add_fields(parser: CommandParser, fields: Mapping[str, Field]) -> None:
    """The options of these fields."""
    for name, field in fields.items():
        if callable(field):
            field(parser)
            continue
        given = {"flag": f"--{name.replace('_', '-')}", "dest": name, **field}
        if not (flag := given.pop("flag")):
            del given["dest"]  # it has no other name
        parser.add_argument(flag or name, **given)


LIMITS: Mapping[str, Field] = {
    "only_permission": words(
        *("--only-permission", "CODE"),
        "on behalf of others it gets these permissions at most, and only what was granted",
        default=SUPPRESS,
    ),
    "only_taxpayer": words(
        *("--only-taxpayer", "TIN[:ROB]"),
        "it may act for these taxpayers only, and only if they grant it",
        type=parse_taxpayer_id,
        default=SUPPRESS,
    ),
    "only_on_behalf": {
        "action": "store_true",
        "help": "each login must name another taxpayer in the header onbehalfof: it gets no token"
        " for its own one",
    },
}


def read_limit(options: dict[str, Any], present: SystemUser | None = None) -> dict[str, Any]:
    """What LIMITS say for `limit_system_user`; what is not given stays as it is with `present`."""
    permissions: Collection[str] = present.allowed_permissions.split() if present else ()
    names = present.allowed_taxpayers.split() if present else ()
    taxpayers = [taxpayer_notation().parse(name) for name in names]
    return {
        "permissions": options.get("only_permission", permissions),
        "taxpayers": options.get("only_taxpayer", taxpayers),
        "only_on_behalf": options["only_on_behalf"] or bool(present and present.only_on_behalf),
    }


def shown_settings(row: SystemUser) -> dict[str, Any]:
    """What staff and operators set, for machines; empty lists: it is not limited."""
    return {
        "name": row.name,
        "scopes": row.scopes.split(),
        "logins_per_minute": row.logins_per_minute,
        "expires_at": row.expires_at,
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
