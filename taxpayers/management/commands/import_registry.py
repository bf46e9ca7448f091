"""`import_registry FILE.csv`: taxpayers in bulk, all or nothing (contract 6)."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from taxpayers.files.taxpayer_rows import ParsedFile, read_taxpayers
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import (
    Author,
    BadRowsError,
    ImportResult,
    import_registry,
    max_rows,
)
from taxpayers.validation import ServiceError, taxpayer_notation


class Command(ServiceCommand):
    help = (
        "Register the taxpayers of a CSV file, all or none. UTF-8, with the columns tin and name,"
        " and optionally rob and active (yes or no). Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.csv", type=Path)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        try:
            result = _import(options["file"], _read(options["file"]), by, at)
        except BadRowsError as fault:
            bad_rows = [{"line": row.line, "fault": row.fault} for row in fault.bad_rows]
            # For people the list comes before the line that sums it up; for machines it is data.
            if not options["json"]:
                self.stderr.write("\n".join(str(row) for row in fault.bad_rows))
            return Answer(_data(ImportResult(0, 0), bad_rows), "", error=str(fault))
        return Answer(
            _data(result, []),
            f"{result.registered} taxpayers are registered. {result.unchanged} were registered"
            " before.",
        )


def _data(result: ImportResult, bad_rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"registered": result.registered, "unchanged": result.unchanged, "bad_rows": bad_rows}


def _read(path: Path) -> ParsedFile:
    try:
        with path.open("rb") as file:
            return read_taxpayers(file, taxpayer_notation(), max_rows())
    except OSError as fault:
        raise ServiceError(f"{path} cannot be read: {fault.strerror}.") from None


def _import(path: Path, parsed: ParsedFile, by: Author, at: datetime) -> ImportResult:
    # disable=None: only on a terminal, never in a log file.
    with tqdm(total=len(parsed.rows), unit=" rows", file=sys.stderr, disable=None) as bar:
        return import_registry(parsed=parsed, source=path.name, by=by, at=at, progress=bar.update)
