"""Commands for many system users at once: those named, those of a file of any size, or all."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from taxpayers.management.arguments import lines_of
from taxpayers.management.command import WRONG_USAGE
from taxpayers.management.find_records import find_system_user
from taxpayers.models import SystemUser


def add_system_users(parser: CommandParser) -> None:
    """`CLIENT_ID…`, `--file FILE` or `--all`; read them with `read_system_users`."""
    parser.add_argument("client_ids", metavar="CLIENT_ID", nargs="*", default=[])
    text = "client IDs, one in each line; -: stdin"
    parser.add_argument("--file", metavar="FILE", type=lines_of, default=[], help=text)
    parser.add_argument("--all", action="store_true", help="every system user")


def read_system_users(options: dict[str, Any]) -> list[SystemUser]:
    """Each once. Raises ServiceError at the first that is not known, before anything is changed."""
    named = dict.fromkeys([*options["client_ids"], *options["file"]])
    if bool(named) == options["all"]:
        raise CommandError("Give client IDs, --file or --all.", returncode=WRONG_USAGE)
    return list(SystemUser.objects.all()) if options["all"] else [*map(find_system_user, named)]


def with_bar(rows: Sequence[Any], unit: str) -> Iterable[Any]:
    """The rows, with a progress bar on a terminal, and never in a log file."""
    return tqdm(rows, unit=f" {unit}", file=sys.stderr, disable=None)
