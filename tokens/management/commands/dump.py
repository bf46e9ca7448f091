"""`dump`: the database in a file, from which `restore` makes it again."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author
from tokens.management import dumps


class Command(ServiceCommand):
    help = (
        "Write the database to a file (pg_dump), while logins go on. The file holds names, TINs and"
        " hashes of secrets, and only its owner can read it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        dumps.add_parts(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        database, file = dumps.database(), options["file"]
        part = file.with_name(f"{file.name}.part")  # one that was interrupted is no dump
        arguments = ["--format=custom", "--load-via-partition-root", f"--file={part}"]
        if options["without_logins"]:
            arguments.append(f"--exclude-table-data={dumps.LOGIN_TABLES}")
        if options["only_logins"]:
            arguments += ["--data-only", f"--table={dumps.LOGIN_TABLES}"]
        try:
            dumps.run("pg_dump", *arguments)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
        size = file.stat().st_size
        text = f"{database} is in {file}: {size / 1e6:.1f} MB."
        return Output({"database": database, "file": file, "bytes": size}, text)
