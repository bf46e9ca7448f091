"""The bases of the commands that do one operation: the arguments, the answer, the texts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandParser
from django.db.models import Model

from taxpayers.management.arguments import Field, add_fields, add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import (
    find_intermediary,
    find_secret,
    find_system_user,
    find_taxpayer,
    only,
)
from taxpayers.models import Credential, GrantedPermission, PermissionRequest, SystemUser
from taxpayers.moments import format_moment
from taxpayers.operations import Reason
from taxpayers.services import Author
from taxpayers.services.ends import end_of

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """The argument that names a record, and the message if there is none: `{}` is its value."""

    name: str
    model: type[Model]
    missing: str
    type: Callable[[str], Any] = str
    help: str = ""
    metavar: str = "ID"
    column: str = "pk"


class OperationCommand(ServiceCommand):
    """`RECORD [OPTIONS] [--reason TEXT]`: does what the record of the operation says.

    A base of each kind of record says how it is named and shown, a command which operation it is.
    """

    operation: ClassVar[Any]
    fields: ClassVar[Mapping[str, Field]] = {}  # its other options, as the service names them
    takes_reason: ClassVar[bool] = True
    note = "Safe to repeat."
    # What `text` fills in: {row} and {effect}; empty: what the history says, and the row.
    done: ClassVar[str] = ""

    named: ClassVar[Named | None] = None  # None: it is new, or a base names it in its own way
    data: Callable[..., dict[str, Any]]  # how it is shown to machines

    def add_record(self, parser: CommandParser) -> None:
        """Add what names it."""
        if (by := self.named) is not None:
            parser.add_argument(by.name, metavar=by.metavar, type=by.type, help=by.help)

    def find(self, options: Options) -> Any:
        """Raises ServiceError if there is none."""
        assert self.named is not None  # noqa: S101 - of what is found by another rule
        value = options[self.named.name]
        rows = self.named.model._default_manager.filter(**{self.named.column: value})
        return only(rows, self.named.missing.format(value))

    def text(self, row: Any) -> str:
        """The answer for people."""
        done = self.done or f"{self.operation.action.past}: {{row}}."
        return done.format(row=row, effect=self.operation.effect)

    def answer(self, done: Any, options: Options) -> Output:
        """The answer, from what the service returned."""
        return Output(self.data(done), self.text(done))

    def add_options(self, parser: CommandParser) -> None:
        """Add those that stand between the record and the reason."""
        add_fields(parser, self.fields)

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

    def data(self, row: Credential) -> dict[str, Any]:
        return {"client_id": row.system_user.client_id, "secret_hint": row.hint}


class PermissionCommand(OperationCommand):
    """`ID`."""

    named = Named(
        *("permission", GrantedPermission),
        "There is no permission {}. Its page and GET /permissions have it.",
        *(int, "the number of its page"),
    )

    def data(self, row: GrantedPermission) -> dict[str, Any]:
        return {"id": row.pk, "valid_until": row.valid_until, "revoked_at": row.revoked_at}


class PermissionRequestCommand(OperationCommand):
    """`ID`."""

    note = ""
    named = Named(
        *("request", PermissionRequest),
        "There is no permission request {}.",
        *(UUID, "the id of the request"),
    )

    def data(self, row: PermissionRequest) -> dict[str, Any]:
        return {
            "id": str(row.pk),
            "state": row.state,
            "taxpayer": row.asked,
            "asks": row.asks,
            "permission": row.permission_id,
            "system_user": row.system_user and row.system_user.client_id,
        }


class ChangedEnd(OperationCommand):
    """`--until DATE`; with the base of the record."""

    note = ""

    def text(self, row: Any) -> str:
        end = end_of(row)
        until = f"until {format_moment(end)}" if end else "with no end date"
        return self.done.format(row=row, until=until)
