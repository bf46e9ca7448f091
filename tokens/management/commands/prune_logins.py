"""`prune_logins --older-than 400d` (contract 6)."""

import re
import sys
from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection
from tqdm import tqdm

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import Author
from tokens.login_events.partitions import is_partitioned
from tokens.login_events.retention import prune

_LEAST_DAYS = 30


def age(text: str) -> timedelta:
    """A number of days such as `400d`; at least a month, so that a typing error loses little."""
    match = re.fullmatch(r"(\d{1,5})d", text.strip())
    if match is None:
        raise ArgumentTypeError(f"{text!r} is no number of days: write 400d.")
    days = int(match[1])
    if days < _LEAST_DAYS:
        raise ArgumentTypeError(f"Logins are kept for at least {_LEAST_DAYS}d; {text} is less.")
    return timedelta(days=days)


class Command(ServiceCommand):
    help = (
        "Delete old login events, and prepare the tables of the months to come. Safe to repeat, "
        "and while logins go on: run it every night."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than", metavar="DAYSd", type=age, required=True, help="for example 400d"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        before = at - options["older_than"]
        unit = "months" if is_partitioned(connection) else "logins"
        with tqdm(unit=f" {unit}", disable=not sys.stderr.isatty()) as bar:
            pruned = prune(before, at, bar.update)
        if unit == "logins":
            return Answer(
                {"deleted": pruned.logins, "unit": unit, "before": before},
                f"{pruned.logins} logins deleted that were older than {before:%Y-%m-%d}.",
            )
        text = (
            f"{pruned.months} months deleted that were older than {before:%Y-%m-%d}."
            " A month goes once all of it is older."
        )
        if pruned.logins:
            text += f" {pruned.logins} older logins went that lay in no month's table."
        data = {"deleted": pruned.months, "unit": unit, "before": before}
        return Answer(data | {"logins_of_no_month": pruned.logins}, text)
