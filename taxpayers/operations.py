"""A record for each operation, beside its service: what every door says of it. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

from taxpayers.actions import Action, marked as _
from taxpayers.duties import Duty


class Reason(Enum):
    """Whether the history stores why it was done."""

    NONE = auto()
    OPTIONAL = auto()
    REQUIRED = auto()  # of staff and programs; operators may leave it out
    ALWAYS = auto()  # of operators, too


def never(_row: Any, _at: datetime) -> str:
    """Of an operation that is possible for every record."""
    return ""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a person or a program can ask for; its title and effect are translated where shown.

    `refusal` says, in the reader's language, why it is not possible for this record now, whatever
    else is given: the service raises it, and the page shows it and no form.
    """

    action: Action
    title: str
    effect: str = ""
    reason: Reason = Reason.REQUIRED
    refusal: Callable[[Any, datetime], str] = never
    is_danger: bool = False
    own_name: str = ""  # where its action has another one

    @property
    def name(self) -> str:
        """Of its page and its command; it never changes."""
        return self.own_name or self.action.name

    @property
    def duty(self) -> Duty | None:
        return self.action.duty

    @property
    def row(self) -> str:
        """How its service names the record; empty: it makes one."""
        return SERVICES[self][1] if self in SERVICES else ""

    def run(self, row: Any, **given: Any) -> Any:
        """Do it, for doors whose fields have the names of its service; raises as that does."""
        service, name = SERVICES[self]
        return service(**({name: row} if name else {}), **given)


# Which function makes it, and how that names the record. Filled by `makes`.
SERVICES: dict[Operation, tuple[Callable[..., Any], str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByReason(Operation):
    """One that needs only a record and a reason; `unneeded` says why there is nothing to do."""

    unneeded: Callable[[Any], str]

    @property
    def verb(self) -> str:
        """The first word of its name, which is that of its address."""
        return self.name.partition("_")[0]


def by_reason_in(module: Mapping[str, Any]) -> tuple[ByReason, ...]:
    """Every operation of a module that needs only a reason, in its order."""
    return tuple(value for value in module.values() if isinstance(value, ByReason))


def unneeded_if_active(row: Any) -> str:
    """Of what can be activated."""
    return _("It is already active.") if row.is_active else ""


def unneeded_if_inactive(row: Any) -> str:
    """Of what can be deactivated."""
    return "" if row.is_active else _("It is already not active.")
