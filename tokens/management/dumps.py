"""PostgreSQL's own programs on the database of the service, for `dump` and `restore`."""

import os
import subprocess

from django.core.management.base import CommandError, CommandParser
from django.db import connection

from tokens.login_events.partitions import TABLE

LOGIN_TABLES = f"{TABLE}*"


def add_parts(parser: CommandParser) -> None:
    """`--without-logins` and `--only-logins`: the registry is small, the logins are not."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--without-logins", action="store_true", help="all but the logins that were recorded"
    )
    group.add_argument("--only-logins", action="store_true", help="only these logins")


def database() -> str:
    """The name of the database. Raises CommandError for one that cannot be dumped or restored."""
    settings = connection.settings_dict
    if connection.vendor != "postgresql":
        raise CommandError("This is for PostgreSQL. Stop the service and copy a SQLite file.")
    if settings["DISABLE_SERVER_SIDE_CURSORS"]:
        raise CommandError("DATABASE_URL leads to PgBouncer: use one of PostgreSQL itself.")
    return str(settings["NAME"])


def run(program: str, *arguments: str) -> str:
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
