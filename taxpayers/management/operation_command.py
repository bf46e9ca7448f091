"""The bases of the commands that do one operation: the arguments, the answer, the texts."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import (
    find_intermediary,
    find_secret,
    find_system_user,
    find_taxpayer,
)
from taxpayers.models import Credential, SystemUser
from taxpayers.operations import Reason
from taxpayers.services import Author

Options = dict[str, Any]


class OperationCommand(ServiceCommand):
    """`RECORD [OPTIONS] [--reason TEXT]`: does what the record of the operation says.

    A base of each kind of record says how it is named and shown, a command which operation it is.
    """

    operation: ClassVar[Any]
    fields: ClassVar[tuple[str, ...]] = ()  # its other options, as the service names them
    takes_reason: ClassVar[bool] = True
    note = "Safe to repeat."
    done: ClassVar[str] = ""  # what `text` fills in: {row} and {effect}

    # How it is named, found (which may raise as `act`), and shown to machines.
    add_record: Callable[..., None]
    find: Callable[..., Any]
    data: Callable[..., dict[str, Any]]

    def text(self, row: Any) -> str:
        """The answer for people."""
        return self.done.format(row=row, effect=self.operation.effect)

    def answer(self, done: Any, options: Options) -> Output:
        """The answer, from what the service returned."""
        return Output(self.data(done), self.text(done))

    def add_options(self, parser: CommandParser) -> None:
        """Add those that stand between the record and the reason."""

    def given(self, options: Options) -> dict[str, Any]:
        """What the service gets beside the record and the reason."""
        return {name: options[name] for name in self.fields}

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_record(parser)
        self.add_options(parser)
        if self.takes_reason:
            add_reason(parser, is_required=self.operation.reason is Reason.ALWAYS)

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        row = self.find(options) if self.operation.row else None
        given = self.given(options)
        if self.takes_reason:
            given["reason"] = options["reason"]
        return self.answer(self.operation.run(row, **given, by=by, at=at), options)


class TaxpayerCommand(OperationCommand):
    """`TIN [--rob ROB]`."""

    def add_record(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)

    def find(self, options: Options) -> Any:
        return find_taxpayer(read_tin_and_rob(options))

    def data(self, row: Any) -> dict[str, Any]:
        return {"taxpayer": row.identifier, "name": row.name, "is_active": row.is_active}


class IntermediaryCommand(TaxpayerCommand):
    """`TIN [--rob ROB]`."""

    def find(self, options: Options) -> Any:
        return find_intermediary(read_tin_and_rob(options))

    def data(self, row: Any) -> dict[str, Any]:
        return {
            "taxpayer": row.taxpayer.identifier,
            "is_active": row.is_active,
            "active_until": row.active_until,
        }


class SystemUserCommand(OperationCommand):
    """`CLIENT_ID`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")

    def find(self, options: Options) -> SystemUser:
        return find_system_user(options["client_id"])

    def data(self, row: SystemUser) -> dict[str, Any]:
        data = {"client_id": row.client_id, "blocked_at": row.blocked_at}
        if row.blocked_at is not None:
            data |= {"blocked_by": row.blocked_by, "blocked_reason": row.blocked_reason}
        return data


class CredentialCommand(OperationCommand):
    """`CLIENT_ID SECRET_HINT`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "hint",
            metavar="SECRET_HINT",
            help="its last four characters; of a key, the end of its kid; of a certificate, as"
            " register_client_certificate shows it",
        )

    def find(self, options: Options) -> Credential:
        return find_secret(find_system_user(options["client_id"]), options["hint"])
