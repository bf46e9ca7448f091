"""`import_registry FILE.csv [--kind KIND]`: records in bulk, all or nothing (contract 6)."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from taxpayers.files.rows import ParsedFile
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import IMPORT_KINDS, Author, BadRowsError, ImportKind, ImportResult
from taxpayers.validation import ServiceError


def _columns(kind: ImportKind) -> str:
    columns = kind.columns
    return f"{', '.join(columns.needed)}, optional {', '.join(columns.optional)}"


class Command(ServiceCommand):
    help = (
        "Register the records of a CSV file, all or none. UTF-8; its first line names the columns."
        " Safe to repeat. "
        + " ".join(f"{name}: {_columns(kind)}." for name, kind in IMPORT_KINDS.items())
        + " System users get no secret: issue one for each with rotate_secret."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.csv", type=Path)
        parser.add_argument(
            "--kind", choices=IMPORT_KINDS, default="taxpayers", help="default: taxpayers"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        name = options["kind"]
        kind = IMPORT_KINDS[name]
        try:
            result = _import(kind, options["file"], _read(kind, options["file"]), by, at)
        except BadRowsError as fault:
            bad_rows = [{"line": row.line, "fault": row.fault} for row in fault.bad_rows]
            # For people the list comes before the line that sums it up; for machines it is data.
            if not options["json"]:
                self.stderr.write("\n".join(str(row) for row in fault.bad_rows))
            return Output(_data(ImportResult(0, 0), bad_rows), "", error=str(fault))
        return Output(
            _data(result, []),
            f"{result.registered} {name.replace('_', ' ')} are registered."
            f" {result.unchanged} were registered before.",
        )


def _data(result: ImportResult, bad_rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"registered": result.registered, "unchanged": result.unchanged, "bad_rows": bad_rows}


def _read(kind: ImportKind, path: Path) -> ParsedFile[Any]:
    try:
        with path.open("rb") as file:
            return kind.read(file)
    except OSError as fault:
        raise ServiceError(f"{path} cannot be read: {fault.strerror}.") from None


def _import(
    kind: ImportKind, path: Path, parsed: ParsedFile[Any], by: Author, at: datetime
) -> ImportResult:
    # disable=None: only on a terminal, never in a log file.
    with tqdm(total=len(parsed.rows), unit=" rows", file=sys.stderr, disable=None) as bar:
        return kind.run(parsed=parsed, source=path.name, by=by, at=at, progress=bar.update)
