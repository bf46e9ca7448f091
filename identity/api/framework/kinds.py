"""A kind of record, its lists and tasks, as values: views and OpenAPI description read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework import serializers

from identity.api.framework.fields import Body, End, Reason, ReasonBody
from identity.api.framework.problems import Problem
from identity.api.framework.query import Filters
from taxpayers.duties import Duty
from taxpayers.operations import Operation, by_reason_in

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Once:
    """A record, and what is shown of it only in this answer, such as a new secret.

    A repeated answer has what is not secret of it, and `later` says what to do if it was lost.
    """

    row: Model
    shown: Mapping[str, Any] = field(repr=False)
    later: Mapping[str, Any]  # instead of what is never stored


@dataclass(frozen=True, slots=True)
class ApiTask:
    """One change of state, done by the service of its operation, or by `act`.

    Both get the locked record (None where one is created), or the `part` of it that the address
    names, the values of the body, who asks (`by`) and when (`at`). The fields of the body have the
    names of the service as their `source`.
    """

    name: str  # the last part of its address; empty for PATCH and for creating
    operation: Operation
    body: type[Body]
    act: Callable[..., Any] | None = None
    note: str = ""  # what its description says besides the effect
    once: Callable[[Any], Once] | None = None  # makes it of what the service returns
    answer: type[serializers.Serializer[Any]] | None = None  # None: the record
    verb: str = ""  # with which its operationId begins; empty: its name
    # What comes before the name in the address, and what the parts of it mean.
    before: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    part: Callable[[Any, Values], Any] = lambda row, _address: row

    def do(self, row: Any, address: Values, **given: Any) -> Model | Once:
        done = (self.act or self.operation.run)(self.part(row, address), **given)
        if self.once is not None:
            return self.once(done)
        is_record = row is None or isinstance(done, (type(row), Once))
        record: Model | Once = done if is_record else row
        return record


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of records; `rows` gets the record to which it belongs, if it belongs to one."""

    name: str
    summary: str
    record: type[serializers.Serializer[Any]]
    order: tuple[str, ...]
    rows: Callable[..., "QuerySet[Any]"]
    filters: type[Filters] = Filters

    def chosen(self, values: Values, *owner: Any) -> "QuerySet[Any]":
        """Those that the filters leave: each value is a condition, or that of its `source`."""
        rows = self.rows(*owner)
        for name, value in values.items():
            rows = rows.filter(value if isinstance(value, Q) else Q(**{name: value}))
        return rows


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of record, for example taxpayers.

    `address` is what names a record there, `where` finds it by that. Its changes are of one duty,
    but for tasks of another one; others must read it. `owner` is the field with the client_id of
    the only client that finds it; empty: all do.
    """

    name: str  # of the list, in addresses and as a tag
    singular: str
    parameter: str  # the part of the address that names a record
    names: str  # what that is, in words
    record: type[serializers.Serializer[Any]]
    duty: Duty
    # Of its list: what the description says, the order, all rows, and another record than `record`.
    summary: str
    order: tuple[str, ...]
    rows: Callable[[], "QuerySet[Any]"]
    filters: type[Filters] = Filters
    listed: type[serializers.Serializer[Any]] | None = None
    address: Callable[[Any], str] = lambda row: str(row.pk)
    where: Callable[[str], Q] = lambda text: Q(pk=text)
    also_read_by: frozenset[Duty] = frozenset()
    owner: str = ""
    create: ApiTask | None = None
    change: ApiTask | None = None
    tasks: tuple[ApiTask, ...] = ()
    parts: Mapping[str, Listing] = field(default_factory=dict)  # lists of what belongs to a record

    @property
    def listing(self) -> Listing:
        name, record = self.name.replace("-", "_"), self.listed or self.record
        return Listing(name, self.summary, record, self.order, self.rows, self.filters)

    def find(self, text: str) -> Model | None:
        if "\0" in text:  # PostgreSQL stores none, and fails if it is asked for
            return None
        try:
            row = self.rows().filter(self.where(text)).first()
        except (ValueError, ValidationError):  # no number, no UUID, no taxpayer
            return None
        # Without other ways to write a number.
        is_named = row is not None and self.address(row).casefold() == text.casefold()
        return row if is_named else None


def part_of(names: str, name: str, what: str) -> dict[str, Any]:
    """For a task of one of what a record has, of which the address has the number."""

    def found(row: Any, address: Values) -> Any:
        number = address[name]
        part = getattr(row, names).filter(pk=number).first()
        if part is None:
            raise Problem("not_found", f"This record has no such {what}.")
        return part

    parameters = {name: f"The id of the {what}."}
    return {"before": f"{names}/<int:{name}>/", "parameters": parameters, "part": found}


def described(operation: Operation, note: str = "") -> dict[str, str]:
    """What the OpenAPI description says of it."""
    return {
        "summary": operation.title,
        "description": " ".join(filter(None, (operation.effect, note))),
    }


def tasks_by_reason(services: Mapping[str, Any]) -> tuple[ApiTask, ...]:
    """One for each operation of these services that needs only a reason."""
    return tuple(ApiTask(record.verb, record, ReasonBody) for record in by_reason_in(services))


def end_tasks(
    kind: str,
    field: str,
    extend: Operation,
    end_earlier: Operation,
    body: type[Body] = Body,
    note: str = "",
) -> tuple[ApiTask, ApiTask]:
    """Of this kind of record; `field` is its last moment there, `body` has what comes besides."""
    last = End(allow_null=True, source="until", help_text="null: no end.")
    later = {"__doc__": "A later end.", field: last}
    earlier = {"__doc__": "An earlier end.", field: End(source="until")}
    why = {"reason": Reason()}
    return (
        ApiTask("extend", extend, type(f"Extend{kind}Body", (body,), later | why), note=note),
        ApiTask("end-earlier", end_earlier, type(f"EndEarlier{kind}Body", (body,), earlier | why)),
    )
