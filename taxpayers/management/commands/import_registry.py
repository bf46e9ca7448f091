"""`import_registry FILE.csv`: taxpayers in bulk, all or nothing (contract 6)."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from taxpayers.files.taxpayer_rows import Reading, read_entries
from taxpayers.management.arguments import notation
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import Author, BadRows, Imported, import_registry
from taxpayers.validation import ServiceError


class Command(ServiceCommand):
    help = (
        "Register the taxpayers of a CSV file, all or none: UTF-8, columns tin and name, and where"
        " wanted rob and active (yes or no). Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.csv", type=Path)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        try:
            done = _import(options["file"], _read(options["file"]), by, at)
        except BadRows as fault:
            # People find the list before the line that sums it up; machines find it in the answer.
            bad_rows = [{"line": row.line, "fault": row.fault} for row in fault.bad_rows]
            text = "" if options["json"] else "\n".join(str(row) for row in fault.bad_rows)
            if text:
                self.stderr.write(text)
            return Answer(_data(Imported(0, 0), bad_rows), "", refusal=str(fault))
        return Answer(
            _data(done, []),
            f"{done.registered} taxpayers are registered; {done.unchanged} were already.",
        )


def _data(done: Imported, bad_rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"registered": done.registered, "unchanged": done.unchanged, "bad_rows": bad_rows}


def _read(path: Path) -> Reading:
    try:
        with path.open("rb") as file:
            return read_entries(file, notation())
    except OSError as fault:
        raise ServiceError(f"{path} cannot be read: {fault.strerror}.") from None


def _import(path: Path, reading: Reading, by: Author, at: datetime) -> Imported:
    # disable=None: only on a terminal, never in a log file.
    with tqdm(total=len(reading.entries), unit=" rows", file=sys.stderr, disable=None) as bar:
        return import_registry(reading=reading, source=path.name, by=by, at=at, progress=bar.update)
