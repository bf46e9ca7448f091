"""Changes grouped by task: what one person did at one moment, be it to one record or to many.

A task gives all its changes the same moment, also an import of 500,000 taxpayers. So a page of
tasks reads a bounded number of changes: behind a large task it goes on without reading through it.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db.models import QuerySet

from taxpayers.models import Change

ORDER = ("-at", "-by", "-id")  # the changes of a task are next to each other; an index has it
BATCH = 200
MAX_SHOWN = 20
MAX_COUNTED = 10_000

Position = tuple[datetime, str]


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """One task: its newest changes, at most MAX_SHOWN, and how many it has."""

    rows: list[Change]
    count: int

    @property
    def is_capped(self) -> bool:
        """Whether it has more than were counted."""
        return self.count > MAX_COUNTED


def group_changes(
    changes: "QuerySet[Change]", size: int, after: Change | None = None
) -> tuple[list[ChangeGroup], bool]:
    """The first `size` tasks among these changes, in ORDER, and whether there are more.

    `after`: continue behind the task of this change.
    """
    groups: list[ChangeGroup] = []
    position = _task_of(after) if after else None
    while len(groups) <= size and (batch := _next(changes, position)):
        runs = [list(run) for _task, run in groupby(batch, key=_task_of)]
        is_cut = len(batch) == BATCH  # the last run may go on
        if is_cut and len(runs) > 1:
            runs.pop()  # read again, with its end
            is_cut = False
        for run in runs:
            count = _count(changes, _task_of(run[0])) if is_cut else len(run)
            groups.append(ChangeGroup(run[:MAX_SHOWN], count))
        position = _task_of(runs[-1][0])
    return groups[:size], len(groups) > size


def changes_of_task(change: Change) -> "QuerySet[Change]":
    """All changes of the same task, the newest first."""
    return Change.objects.filter(at=change.at, by=change.by).order_by(*ORDER)


def _task_of(change: Change) -> Position:
    return change.at, change.by


def _next(changes: "QuerySet[Change]", position: Position | None) -> list[Change]:
    """The next changes behind the position: each query begins at the right place of the index."""
    if position is None:
        return list(changes[:BATCH])
    at, by = position
    same_moment = list(changes.filter(at=at, by__lt=by)[:BATCH])
    return same_moment or list(changes.filter(at__lt=at)[:BATCH])


def _count(changes: "QuerySet[Change]", task: Position) -> int:
    at, by = task
    return changes.filter(at=at, by=by).order_by()[: MAX_COUNTED + 1].count()
