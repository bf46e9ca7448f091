"""A record for each operation that needs only a reason: what every door says of it, and does. Pure.

It stands beside its service. The pages, the tasks of the management API and the commands take their
titles, their explanations and what they do from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taxpayers.actions import Action
from taxpayers.actions import marked as _
from taxpayers.duties import Duty


@dataclass(frozen=True, slots=True)
class Operation:
    """What a person or a program can ask for with a record and a reason.

    `service` takes the record as `row`, the reason, by and at. `unneeded` says why there is nothing
    to do, or nothing: then the service changes nothing, and the page shows this and no form.
    Texts are marked for translation.
    """

    action: Action
    service: Callable[..., Any]
    row: str
    title: str
    effect: str
    unneeded: Callable[[Any], str]
    is_danger: bool = False
    is_reason_required: bool = False  # of operators; staff and programs always give one
    own_name: str = ""  # where its action has another one

    @property
    def name(self) -> str:
        """Of its page and its command; it never changes."""
        return self.own_name or self.action.name

    @property
    def duty(self) -> Duty | None:
        return self.action.duty

    def run(self, row: Any, **why: Any) -> Any:
        """Do it. Raises ServiceError as the service does."""
        return self.service(**{self.row: row}, **why)


def unneeded_if_active(row: Any) -> str:
    """Of what can be activated."""
    return _("It is already active.") if row.is_active else ""


def unneeded_if_inactive(row: Any) -> str:
    """Of what can be deactivated."""
    return "" if row.is_active else _("It is already not active.")
