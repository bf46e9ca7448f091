"""`dump` and `restore`: the database in a file, and again from it, by PostgreSQL's own programs."""

import os
import subprocess
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author
from tokens.login_events.partitions import TABLE

_LOGIN_TABLES = f"{TABLE}*"


def _add_parts(parser: CommandParser) -> None:
    """`--without-logins` and `--only-logins`: the registry is small, the logins are not."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--without-logins", action="store_true", help="all but the logins that were recorded"
    )
    group.add_argument("--only-logins", action="store_true", help="only these logins")


def _database() -> str:
    """The name of the database. Raises CommandError for one that cannot be dumped or restored."""
    settings = connection.settings_dict
    if connection.vendor != "postgresql":
        raise CommandError("This is for PostgreSQL. Stop the service and copy a SQLite file.")
    if settings["DISABLE_SERVER_SIDE_CURSORS"]:
        raise CommandError("DATABASE_URL leads to PgBouncer: use one of PostgreSQL itself.")
    return str(settings["NAME"])


def _run(program: str, *arguments: str) -> str:
    """What `pg_dump` or `pg_restore` prints. Raises CommandError with its last line."""
    to_it, secret = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    environment = {**os.environ, **(secret or {})}
    command = [program, *to_it[1:-1], f"--dbname={to_it[-1]}", *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - PostgreSQL's own, on the database of the service
            command, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise CommandError(f"{program} is not installed (Debian: postgresql-client).") from None
    if done.returncode:
        raise CommandError(f"{done.stderr.strip()}\nNothing has been changed.")
    return done.stdout


class _Dump(ServiceCommand):
    help = (
        "Write the database to a file (pg_dump), while logins go on. The file holds names, TINs and"
        " hashes of secrets, and only its owner can read it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        _add_parts(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        database, file = _database(), options["file"]
        part = file.with_name(f"{file.name}.part")  # one that was interrupted is no dump
        arguments = ["--format=custom", "--load-via-partition-root", f"--file={part}"]
        if options["without_logins"]:
            arguments.append(f"--exclude-table-data={_LOGIN_TABLES}")
        if options["only_logins"]:
            arguments += ["--data-only", f"--table={_LOGIN_TABLES}"]
        try:
            _run("pg_dump", *arguments)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
        size = file.stat().st_size
        text = f"{database} is in {file}: {size / 1e6:.1f} MB."
        return Output({"database": database, "file": file, "bytes": size}, text)


class _Restore(ServiceCommand):
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
        _add_parts(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        database, file = _database(), options["file"]
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
            _run("pg_restore", *arguments, f"--use-list={chosen.name}", str(file))
        return Output({"database": database, "file": file}, f"{file} is restored to {database}.")


def _contents(file: Path, options: dict[str, Any]) -> list[str]:
    """What to restore: each entry of the dump is a line."""
    lines = _run("pg_restore", "--list", str(file)).splitlines(keepends=True)
    if not (options["only_logins"] or options["without_logins"]):
        return lines
    wanted = options["only_logins"]
    return [line for line in lines if (f" TABLE DATA public {TABLE}" in line) == wanted]


COMMANDS = {"dump": _Dump, "restore": _Restore}
