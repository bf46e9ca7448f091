"""The history of every change of state: who, when, from where, what and why (contract 4)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Model, QuerySet

from taxpayers.actions import Action
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.operations import SERVICES, Operation, Reason
from taxpayers.redaction import shown
from taxpayers.validation import ServiceError, validate_reason

_Row = TypeVar("_Row", bound=Model)
_Service = TypeVar("_Service", bound=Callable[..., Any])


CLIENT = " (client)"  # how the history marks one, behind its client ID


class AuthorKind(StrEnum):
    """What makes a change. Only an operator may change clients of the management API."""

    PERSON = "person"  # of the staff, on the pages
    CLIENT = "client"  # with a token, by an API
    OPERATOR = "operator"  # by a command on a machine of the service


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, and from which address if it came over the network."""

    name: str
    address: str | None = None
    task_id: UUID | None = None  # the same in all changes that are made as one
    kind: AuthorKind = AuthorKind.PERSON

    @classmethod
    def client(
        cls, client_id: str, address: str | None = None, task_id: UUID | None = None
    ) -> "Author":
        """A system user."""
        return cls(client_id + CLIENT, address, task_id, AuthorKind.CLIENT)

    @property
    def client_id(self) -> str:
        """Of the system user; empty: it is none."""
        return self.name.removesuffix(CLIENT) if self.kind is AuthorKind.CLIENT else ""

    def in_one_task(self) -> "Author":
        """The same author, whose changes are one task in the history; a task that began goes on."""
        return replace(self, task_id=self.task_id or uuid4())


class Asked(TypedDict):
    """Who asks for a change, when and why: every service takes it, and passes it on whole."""

    by: Author
    at: datetime
    reason: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """What all records of one change have in common."""

    action: Action
    by: Author
    at: datetime
    reason: str = ""


def makes(
    operations: Operation | tuple[Operation, ...],
    row: str = "",
    within: Callable[..., Any] = transaction.atomic,  # makes a ContextDecorator
) -> Callable[[_Service], _Service]:
    """Makes a service atomic and known to the doors; `row`: its argument for the record, if any."""

    def decorated(service: _Service) -> _Service:
        atomic: _Service = within()(service)
        each = operations if isinstance(operations, tuple) else (operations,)
        SERVICES.update(dict.fromkeys(each, (atomic, row)))
        return atomic

    return decorated


def switches(on: Operation, off: Operation, row: str) -> Callable[[_Service], _Service]:
    """The same for a service that makes two operations, by its argument `is_active`."""

    def decorated(service: _Service) -> _Service:
        atomic = transaction.atomic(service)
        SERVICES[on] = partial(atomic, is_active=True), row
        SERVICES[off] = partial(atomic, is_active=False), row
        return atomic

    return decorated


def context_of(change: Operation | Action, **asked: Unpack[Asked]) -> ChangeContext:
    """The change that is made. Raises ServiceError without a reason that it needs."""
    if isinstance(change, Operation):
        action, rule = change.action, change.reason
    else:
        action, rule = change, Reason.REQUIRED
    reason = asked.get("reason", "")
    if reason or rule in (Reason.REQUIRED, Reason.ALWAYS):
        reason = validate_reason(reason)
    return ChangeContext(action, asked["by"], asked["at"], reason)


def lock_for_update(row: _Row) -> _Row:
    """The row as it is now, locked for the transaction. Raises ServiceError if it is gone."""
    model = type(row)
    try:
        return model._default_manager.select_for_update().get(pk=row.pk)
    except model.DoesNotExist:  # type: ignore[attr-defined]  # every model has it
        raise ServiceError("{record} no longer exists.", record=row) from None


def update_and_record(row: Model, context: ChangeContext, **fields: Any) -> bool:
    """Save these new values and record the old ones; False, and no write, if none is new."""
    before = {name: getattr(row, name) for name in fields if getattr(row, name) != fields[name]}
    if not before:
        return False
    for name in before:
        setattr(row, name, fields[name])
    row.save(update_fields=list(before))
    record_change(row, context, before=before, after={name: fields[name] for name in before})
    return True


def record_change(
    row: Model | type[Model],
    context: ChangeContext,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any],
) -> None:
    """Write a change of one or many rows into the history. Never pass a secret or a hash."""
    change_of(row, context, before=before or {}, after=after).save()


def record_export(model: type[Model], context: ChangeContext, *, filters: str, form: str) -> None:
    """Write who exported a list of rows, which part of it and in which file format."""
    record_change(model, context, after={"form": form, "filters": shown(filters, 500)})


def change_part(
    owner: Model, part: Any, context: ChangeContext, also: Collection[str] = (), **fields: Any
) -> None:
    """Save these new values of a credential, and record them with its owner: people look there.

    Columns of `also` were set before: they are saved too, and not recorded.
    """
    names = {f"secret_{name}" if name in _OF_SECRET else name: name for name in fields}
    before = {name: getattr(part, column) for name, column in names.items()}
    for column, value in fields.items():
        setattr(part, column, value)
    part.save(update_fields=[*fields, *also])
    after = {name: fields[column] for name, column in names.items()}
    record_change(owner, context, before=named(part) | before, after=named(part) | after)


# In the history of their owner these are not mistaken for its own.
_OF_SECRET = ("expires_at", "revoked_at")


def change_of(
    row: Model | type[Model],
    context: ChangeContext,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
) -> Change:
    """The history's row, not yet saved: for bulk changes."""
    if isinstance(row, Model):
        key, label = str(row.pk), label_of(row)
    else:
        key, label = "", str(row._meta.verbose_name_plural)[:255]
    return Change(
        at=context.at,
        by=context.by.name,
        address=context.by.address,
        action=context.action.name,
        object_type=row._meta.model_name or "",
        object_id=key,
        label=label,
        reason=context.reason,
        task_id=context.by.task_id,
        before={name: _plain(value) for name, value in before.items()},
        after={name: _plain(value) for name, value in after.items()},
    )


def of_task(changes: QuerySet[Change], task_id: UUID | None) -> QuerySet[Change]:
    """Those of this task, the newest first."""
    # A range, in the order of the index of tasks: asked for one ID in the order of keys, PostgreSQL
    # may read the whole history to meet the rows of a large task soon.
    return changes.filter(task_id__range=(task_id, task_id)).order_by("task_id", "-id")


def named(secret: Any) -> dict[str, Any]:
    """What every change of it says of it: its last characters and its kind."""
    return {"secret": str(secret), "credential": secret.kind.value}


def label_of(row: Model) -> str:
    """The name of a row in the history: its identifier first, so that no long name cuts it off."""
    match row:
        case Taxpayer():
            label = f"{row.identifier} {row.name}"
        case Intermediary():
            return label_of(row.taxpayer)
        case GrantedPermission():
            label = f"{row.taxpayer.identifier} → {row.intermediary.taxpayer.identifier}"
        case SystemUser():
            label = f"{row.client_id} {row.name}"
        case _:
            label = str(getattr(row, "history_label", row))
    return label[:255]


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
