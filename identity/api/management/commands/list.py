"""`list KIND [--FILTER VALUE…]`: records of the registry and logins, one in each line."""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.api.framework.kinds import Listing
from identity.api.framework.problem_answers import field_errors
from identity.api.framework.problems import Problem
from identity.api.framework.query import Filters
from identity.api.management.operator_records import LISTINGS, cell, record_of
from taxpayers.management.command import WRONG_USAGE, Output, ServiceCommand
from taxpayers.services import Author

_AT_ONCE = 500
_FILTERS: dict[str, list[str]] = {}  # those that have it
for _listing in LISTINGS.values():
    for _name in _listing.filters().fields.keys() - Filters().fields.keys():
        _FILTERS.setdefault(_name, []).append(_listing.name)


class Command(ServiceCommand):
    help = (
        "List records, in a stable order: a line of names, then one for each record, its values"
        " separated by tabs. Names and values are those of the management API."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=LISTINGS)
        parser.add_argument("--limit", type=int, default=100, help="how many; 0: all (100)")
        for name, kinds in sorted(_FILTERS.items()):
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, dest=name, help=f"of {', '.join(kinds)}")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        listing = LISTINGS[options["kind"]]
        rows = _chosen(listing, {k: options[k] for k in _FILTERS if options[k] is not None})
        # One after the other: a list may be longer than the memory.
        every = rows.order_by(*listing.order).iterator(_AT_ONCE)
        shown = (record_of(listing.record, row, at) for row in every)
        wanted: Iterator[Any] = islice(shown, max(options["limit"], 0) or None)
        # The first one before anything is written: an error has no half answer before it.
        wanted = chain(list(islice(wanted, 1)), wanted)
        if options["json"]:
            self.stdout.write(f'{{"{listing.name}": [', ending="")
            for number, record in enumerate(wanted):
                self.stdout.write((",\n" if number else "\n") + json.dumps(record), ending="")
            self.stdout.write("\n]}")
        else:
            self.stdout.write("\t".join(listing.record().fields))
            for record in wanted:
                self.stdout.write("\t".join(map(cell, record.values())))
        return Output({}, "")

    def write_answer(self, answer: Output, options: dict[str, Any]) -> None:
        """It is written."""


def _chosen(listing: Listing, given: dict[str, str]) -> Any:
    """Raises CommandError, which names each filter that is wrong."""
    read = listing.filters(data=given)
    try:
        if not read.is_valid():
            faults = (f"{error.pointer[2:]}: {error.detail}" for error in field_errors(read.errors))
            raise CommandError(" ".join(faults), returncode=WRONG_USAGE)
    except Problem as fault:
        raise CommandError(fault.detail, returncode=WRONG_USAGE) from None
    return listing.chosen({n: value for n, value in read.validated_data.items() if n != "limit"})
