"""What timers run: `count_logins` every few minutes, `prune_logins` each night (contract 6)."""

import re
import sys
from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from taxpayers.services.history import ChangeContext, record_change
from tokens import actions
from tokens.login_events.counting import SETTLED_AFTER, count_all, note_first_uses
from tokens.login_events.partitions import is_partitioned
from tokens.login_events.reference import oldest_login
from tokens.login_events.retention import Pruned, prepare, prune, prune_expired
from tokens.models import LoginEvent


class _CountLogins(ServiceCommand):
    help = (
        "Count the logins of past hours for the overview, and record which permissions were used"
        " for the first time. Run this every few minutes. Safe to repeat, and while logins go on."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        with tqdm(unit=" steps", file=sys.stderr, disable=None) as bar:
            steps = count_all(at, bar.update)
        first_uses = note_first_uses(by=by, at=at)
        until = at - SETTLED_AFTER
        return Output(
            {"steps": steps, "first_uses": first_uses, "until": until},
            f"All logins until {format_moment(until)} are counted.",
        )


_MIN_DAYS = 30
# A month, and some nights on which the timer did not run. More is a setting that has changed.
_MOST_AT_ONCE = timedelta(days=40)


def _age(text: str) -> timedelta:
    """A number of days such as `400d`; at least 30, so that a typing error deletes little."""
    match = re.fullmatch(r"(\d{1,5})d", text.strip())
    if match is None:
        raise ArgumentTypeError(f"{text!r} is not a number of days: write, for example, 400d.")
    days = int(match[1])
    if days < _MIN_DAYS:
        raise ArgumentTypeError(f"Logins are stored for at least {_MIN_DAYS}d; {text} is less.")
    return timedelta(days=days)


class _PruneLogins(ServiceCommand):
    help = (
        "Delete old login events, throttled callers after 30 days, and revoked tokens, used client"
        " assertions and used DPoP proofs that have expired, and create the tables of the next"
        " months. Safe to repeat, and while logins go on: run it every night."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            metavar="DAYSd",
            type=_age,
            default=settings.LOGIN_RETENTION,
            help="for example 400d; by default LOGIN_RETENTION, and without it no login is deleted",
        )
        parser.add_argument(
            "--yes",
            action="store_true",
            help=f"delete even if that is more than {_MOST_AT_ONCE.days} days of logins",
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        prepare(at)
        prune_expired(at)
        if options["older_than"] is None:
            return Output({"deleted": 0}, "No login is deleted: LOGIN_RETENTION is not set.")
        before = at - options["older_than"]
        if not options["yes"]:
            _refuse_many(before)
        by_month = is_partitioned()
        unit = "months" if by_month else "logins"
        pruned = Pruned()
        try:
            with tqdm(unit=f" {unit}", disable=not sys.stderr.isatty()) as bar:
                for step in prune(before):
                    pruned += step
                    bar.update(step["months"] if by_month else step["logins"])
        finally:  # also if it is stopped: those are gone
            _record(pruned, before, by, at)
        if not by_month:
            return Output(
                {"deleted": pruned["logins"], "unit": unit, "before": before},
                f"{pruned['logins']} logins deleted that were older than {before:%Y-%m-%d}.",
            )
        text = (
            f"{pruned['months']} months deleted that were older than {before:%Y-%m-%d}."
            " A month is deleted once all of it is older."
        )
        if pruned["logins"]:
            text += (
                f" {pruned['logins']} older logins outside the tables of the months are deleted."
            )
        data = {"deleted": pruned["months"], "unit": unit, "before": before}
        return Output(data | {"logins_of_no_month": pruned["logins"]}, text)


def _refuse_many(before: datetime) -> None:
    first = oldest_login()
    if first and first < before - _MOST_AT_ONCE:
        raise CommandError(
            f"This would delete the logins from {first:%Y-%m-%d} to {before:%Y-%m-%d}, more than"
            f" {_MOST_AT_ONCE.days} days of them at once. Nothing has been deleted. Correct"
            " LOGIN_RETENTION, or say --yes."
        )


def _record(pruned: Pruned, before: datetime, by: Author, at: datetime) -> None:
    deleted = {"deleted_months": pruned["months"], "deleted_logins": pruned["logins"]}
    if after := {name: number for name, number in deleted.items() if number}:
        context = ChangeContext(actions.PRUNE_LOGINS, by, at)
        record_change(LoginEvent, context, after={"deleted_before": before} | after)


COMMANDS = {"count_logins": _CountLogins, "prune_logins": _PruneLogins}
