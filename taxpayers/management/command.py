"""The base of all commands: an answer on stdout, or one line on stderr (contract 6).

Exit codes: 0 done, 1 refused, 2 a wrong command line, 75 (EX_TEMPFAIL) try again later.
"""

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

from taxpayers.management.database_errors import describe, exit_code
from taxpayers.moments import exact_text
from taxpayers.operations import Operation
from taxpayers.services import Author, AuthorKind, ServiceError

# Stored in the history where operators gave none.
NO_REASON = "not given"
REFUSED, WRONG_USAGE = 1, 2
_ERRORS = {REFUSED: "refused", WRONG_USAGE: "usage", os.EX_TEMPFAIL: "try_again_later"}
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
    default = None if is_required else NO_REASON
    parser.add_argument(
        "--reason", metavar="TEXT", required=is_required, default=default, help="for the history"
    )


class ServiceCommand(BaseCommand):
    """A command overrides `add_arguments` and `act`; this class does the rest.

    `call_command` raises CommandError with the line that stands on stderr.
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
        parser.called_from_command_line = False  # its errors are CommandErrors: one line
        parser.add_argument(
            "--json", action="store_true", help="Answer with a JSON object for machines."
        )
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        # A new secret must not be lost because the terminal cannot encode a letter beside it.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            self.execute(**self._options(argv))
        except CommandError as error:
            line, code = str(error), error.returncode
            answer = {"error": _ERRORS[code], "message": line}
            self.stderr.write(json.dumps(answer) if "--json" in argv else line)
            sys.exit(code)
        finally:
            connections.close_all()

    def _options(self, argv: list[str]) -> dict[str, Any]:
        try:
            return vars(self.create_parser(argv[0], argv[1]).parse_args(argv[2:]))
        except CommandError as error:
            line = str(error).removeprefix("Error: ")
            raise CommandError(line, returncode=WRONG_USAGE) from None

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
        line = describe(fault, "Nothing has been changed.")
        raise CommandError(line, returncode=exit_code(fault)) from fault
    except KeyboardInterrupt:
        raise CommandError("Stopped. What was not finished has not been changed.") from None


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return exact_text(value)
    return str(value)
