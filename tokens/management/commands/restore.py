"""`restore`: a database from a file of `dump`; never over one that has something in it."""

from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author
from tokens.login_events.partitions import TABLE
from tokens.management import dumps


class Command(ServiceCommand):
    help = (
        "Read a file of `dump` into an empty database, all of it or nothing. With --only-logins"
        " into the database of the service, while logins go on: so the service is back as soon as"
        " the rest is restored by --without-logins."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "database", metavar="DATABASE", help="its name, as DATABASE_URL has it: a precaution"
        )
        dumps.add_parts(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        database, file = dumps.database(), options["file"]
        if options["database"] != database:
            raise CommandError(f"DATABASE_URL leads to {database}, not {options['database']}.")
        if not options["only_logins"] and (tables := connection.introspection.table_names()):
            raise CommandError(
                f"{database} is not empty: it has {len(tables)} tables. Create an empty database,"
                " restore into it, and let DATABASE_URL lead there."
            )
        arguments = ["--single-transaction", "--exit-on-error", "--no-owner"]
        with NamedTemporaryFile("w", encoding="utf-8") as chosen:
            chosen.writelines(_contents(file, options))
            chosen.flush()
            dumps.run("pg_restore", *arguments, f"--use-list={chosen.name}", str(file))
        return Output({"database": database, "file": file}, f"{file} is restored to {database}.")


def _contents(file: Path, options: dict[str, Any]) -> list[str]:
    """What to restore: each entry of the dump is a line."""
    lines = dumps.run("pg_restore", "--list", str(file)).splitlines(keepends=True)
    if not (options["only_logins"] or options["without_logins"]):
        return lines
    wanted = options["only_logins"]
    return [line for line in lines if (f" TABLE DATA public {TABLE}" in line) == wanted]
