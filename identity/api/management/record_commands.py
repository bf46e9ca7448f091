"""`list KIND [--FILTER VALUE…]` and `show KIND NAME`: records as the management API shows them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q
from rest_framework import serializers

from identity.api.framework.fields import Text
from identity.api.framework.kinds import Listing, RecordKind
from identity.api.framework.problem_answers import field_errors
from identity.api.framework.problems import Problem
from identity.api.framework.query import Filters
from identity.api.registry import (
    intermediaries,
    logins,
    permission_requests,
    permissions,
    system_users,
    taxpayers,
)
from identity.api.registry.system_user_records import CREDENTIALS
from taxpayers.management.command import WRONG_USAGE, Output, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.models import Credential
from taxpayers.services import Author

_KINDS = (
    *(taxpayers.KIND, intermediaries.KIND, permissions.KIND, permissions.CODES),
    *(permission_requests.KIND, system_users.KIND, logins.KIND),
)
KINDS: dict[str, RecordKind] = {kind.singular.replace(" ", "_"): kind for kind in _KINDS}


class _SystemUser(Text):
    def to_internal_value(self, data: Any) -> Q:  # type: ignore[override]
        return Q(system_user=find_system_user(super().to_internal_value(data)))


class _OfSystemUser(Filters):
    client_id = _SystemUser()


_CREDENTIALS = replace(
    CREDENTIALS,
    filters=_OfSystemUser,
    rows=lambda: Credential.objects.select_related("system_user__usage"),
)
LISTINGS: dict[str, Listing] = {
    listing.name: listing for listing in (*(kind.listing for kind in _KINDS), _CREDENTIALS)
}
_AT_ONCE = 500
_FILTERS: dict[str, list[str]] = {}  # those that have it
for _listing in LISTINGS.values():
    for _name in _listing.filters().fields.keys() - Filters().fields.keys():
        _FILTERS.setdefault(_name, []).append(_listing.name)


class _List(ServiceCommand):
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
        shown = (_record_of(listing.record, row, at) for row in every)
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
                self.stdout.write("\t".join(map(_cell, record.values())))
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


class _Show(ServiceCommand):
    help = "Show a record, with the names and values of the management API. " + " ".join(
        f"{name}: {kind.names}" for name, kind in KINDS.items()
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=KINDS)
        parser.add_argument("name", metavar="NAME", help="what names it, see above")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        kind = KINDS[options["kind"]]
        row = kind.find(options["name"])
        if row is None:
            raise CommandError(f"There is no {kind.singular} {options['name']}.")
        record = _record_of(kind.record, row, at)
        return Output(
            record, "\n".join(f"{name}: {_cell(value)}" for name, value in record.items())
        )


def _record_of(kind: type[serializers.Serializer[Any]], row: Any, at: datetime) -> dict[str, Any]:
    return dict(kind(row, context={"at": at, "may_change": True}).data)


def _cell(value: Any) -> str:
    """A value for people, in one line and without a tab."""
    if isinstance(value, list) and not any(isinstance(one, dict) for one in value):
        return " ".join(map(str, value))
    if isinstance(value, dict | list | bool):
        return json.dumps(value)
    return "" if value is None else " ".join(str(value).split())


COMMANDS = {"list": _List, "show": _Show}
