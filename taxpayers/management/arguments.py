"""What can stand on a command line: taxpayers and dates (contract 6)."""

from argparse import ArgumentTypeError
from datetime import UTC, date, datetime, time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId


def notation() -> Notation:
    """How this country writes a TIN and a ROB number."""
    return Notation(tin=settings.TIN_PATTERN, rob=settings.ROB_PATTERN)


def taxpayer_id(text: str) -> TaxpayerId:
    """`TIN` or `TIN:ROB`, as in the header `onbehalfof`."""
    try:
        return notation().parse(text)
    except MalformedIdentifier as fault:
        raise ArgumentTypeError(f"{text!r} names no taxpayer: {fault}.") from None


def add_tin_and_rob(parser: CommandParser) -> None:
    """`TIN [--rob ROB]`; read it with `tin_and_rob`."""
    parser.add_argument("tin", metavar="TIN", help="tax identification number")
    parser.add_argument("--rob", default="", help="ROB number, where there is one")


def tin_and_rob(options: dict[str, Any]) -> TaxpayerId:
    """The taxpayer named by `TIN [--rob ROB]`. Raises CommandError if it names none."""
    try:
        return notation().parse_parts(options["tin"].strip(), options["rob"].strip())
    except MalformedIdentifier as fault:
        raise CommandError(f"This names no taxpayer: {fault}.") from None


def add_taxpayer_and_intermediary(parser: CommandParser) -> None:
    """`--taxpayer TIN[:ROB] --intermediary TIN[:ROB]`."""
    for name, who in (("taxpayer", "who permits"), ("intermediary", "who may act for it")):
        parser.add_argument(
            f"--{name}", metavar="TIN[:ROB]", type=taxpayer_id, required=True, help=who
        )


def first_moment(text: str) -> datetime:
    """A moment, or the first one of a whole day in the authority's time zone; in UTC."""
    return _moment(text, time.min, fold=0)


def last_moment(text: str) -> datetime:
    """A moment, or the last one of a whole day in the authority's time zone; in UTC."""
    # Where clocks go back over midnight, a day's last moment comes twice: fold=1 is the later.
    return _moment(text, time.max, fold=1)


def _moment(text: str, time_of_day: time, fold: int) -> datetime:
    try:
        moment = _read(text, time_of_day.replace(fold=fold))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.get_default_timezone())
        timezone.localtime(moment)  # what staff could not be shown is no date either
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is no date: write 2027-12-31, 2027-12-31T18:00 (in {settings.TIME_ZONE})"
            " or 2027-12-31T10:00Z."
        ) from None


def _read(text: str, time_of_day: time) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    return datetime.combine(day, time_of_day)
