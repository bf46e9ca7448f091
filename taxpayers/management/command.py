"""The base of all commands: an answer on stdout, or one line on stderr and exit 1 (contract 6)."""

import contextlib
import io
import json
import os
import pwd
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connections
from django.utils import timezone

from taxpayers.management.database_errors import describe
from taxpayers.moments import exact_text
from taxpayers.operations import Operation
from taxpayers.services import Author, AuthorKind, ServiceError

# Stored in the history where operators gave none.
NO_REASON = "not given"
_LONGEST_USER = 64


@dataclass(frozen=True, slots=True)
class Output:
    """The outcome of a command: `data` for machines, `text` for people.

    In `data` moments are aware datetimes; `error` is the line for stderr if it exits 1 after all.
    """

    data: dict[str, Any]
    text: str
    error: str = ""


def add_reason(parser: CommandParser, *, is_required: bool = False) -> None:
    """`--reason TEXT`: only where contract 6 says so must operators give one."""
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        required=is_required,
        default=None if is_required else NO_REASON,
        help="for the history",
    )


class ServiceCommand(BaseCommand):
    """A command overrides `add_arguments` and `act`; this class does the rest.

    `--json`; exit 0, or 1 with one line on stderr, also for a wrong argument or an unreachable
    database. `call_command` raises CommandError with that line. Its help says what the record of
    its `operation` says, and the `note`.
    """

    operation: ClassVar[Operation]
    note: ClassVar[str] = ""

    # `manage.py check` reports a wrong configuration; it must not stop an operator's command.
    requires_system_checks = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if operation := cls.__dict__.get("operation"):
            cls.help = " ".join(filter(None, (f"{operation.title}.", operation.effect, cls.note)))

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        """Do the work. Raise ServiceError or CommandError if it cannot be done."""
        raise NotImplementedError

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)
        parser.called_from_command_line = False  # its errors are CommandErrors: exit 1, one line
        parser.add_argument(
            "--json", action="store_true", help="Answer with a JSON object for machines."
        )
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        # A new secret must not be lost because the terminal cannot encode a letter beside it.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            options = vars(self.create_parser(argv[0], argv[1]).parse_args(argv[2:]))
            self.execute(**options)
        except CommandError as error:
            self.stderr.write(str(error).removeprefix("Error: "))
            sys.exit(1)
        finally:
            connections.close_all()

    def handle(self, *_args: Any, **options: Any) -> None:
        with _errors_as_one_line():
            answer = self.act(options, by=author(), at=timezone.now())
        self.write_answer(answer, options)

    def write_answer(self, answer: Output, options: dict[str, Any]) -> None:
        """Write the answer to stdout. Raises CommandError if it carries a refusal."""
        if options["json"]:
            self.stdout.write(json.dumps(answer.data, indent=2, default=_plain))
        elif answer.text:
            self.stdout.write(answer.text)
        if answer.error:
            raise CommandError(answer.error)


def author() -> Author:
    """Who runs the command: the user of the operating system, and who became it by `sudo`.

    SUDO_USER is never the whole name: it comes from the environment, which the caller sets.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        user = f"user {os.getuid()}"
    sudo_user = re.sub(r"[^\w.@+-]", "?", os.environ.get("SUDO_USER", ""), flags=re.ASCII)
    if sudo_user:
        # Cut, so that the history has room for both.
        user = f"{sudo_user[:_LONGEST_USER]} (sudo as {user})"
    return Author(f"{user} (manage.py)", kind=AuthorKind.OPERATOR)


@contextlib.contextmanager
def _errors_as_one_line() -> Iterator[None]:
    try:
        yield
    except ServiceError as fault:
        raise CommandError(str(fault)) from fault
    except Error as fault:
        raise CommandError(describe(fault, "Nothing has been changed.")) from fault
    except KeyboardInterrupt:
        raise CommandError("Stopped. What was not finished has not been changed.") from None


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return exact_text(value)
    return str(value)
