"""Changes grouped by task: what was done as one, be it to one record or to many.

The changes of a task share its id, one moment and one person, also those of an import of 500,000
taxpayers, and follow each other. Changes without an id are one task if the same person made them at
the same moment. A page of tasks reads a bounded number of changes: behind a large task it goes on
without reading through it.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import QuerySet

from taxpayers.models import Change

ORDER = ("-at", "-by", "-id")  # the changes of a task are next to each other; an index has it
BATCH = 200
MAX_SHOWN = 20
MAX_COUNTED = 10_000

_TaskKey = tuple[datetime, str, UUID | None]


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
    last = _last(_task_of(after)) if after else None
    while len(groups) <= size and (batch := _next(changes, last)):
        runs = [list(run) for _task, run in groupby(batch, key=_task_of)]
        is_cut = len(batch) == BATCH  # the last run may go on
        if is_cut and len(runs) > 1:
            runs.pop()  # read again, with its end
            is_cut = False
        for run in runs:
            count = _count(changes, _task_of(run[0])) if is_cut else len(run)
            groups.append(ChangeGroup(run[:MAX_SHOWN], count))
        last = _last(_task_of(run[0])) if is_cut else run[-1]
    return groups[:size], len(groups) > size


def changes_of_task(change: Change) -> "QuerySet[Change]":
    """All changes of the same task, the newest first."""
    return _of_task(Change.objects.all(), _task_of(change)).order_by("-id")


def _task_of(change: Change) -> _TaskKey:
    return change.at, change.by, change.task_id


def _of_task(changes: "QuerySet[Change]", task: _TaskKey) -> "QuerySet[Change]":
    at, by, task_id = task
    if task_id is not None:
        return changes.filter(task_id=task_id)
    return changes.filter(at=at, by=by, task_id__isnull=True)


def _next(changes: "QuerySet[Change]", last: Change | None) -> list[Change]:
    """The changes after the last one: each query begins at the right place of the index."""
    if last is None:
        return list(changes[:BATCH])
    same_moment = changes.filter(at=last.at)
    return (
        list(same_moment.filter(by=last.by, pk__lt=last.pk)[:BATCH])
        or list(same_moment.filter(by__lt=last.by)[:BATCH])
        or list(changes.filter(at__lt=last.at)[:BATCH])
    )


def _last(task: _TaskKey) -> Change | None:
    return _of_task(Change.objects.all(), task).order_by("id").first()


def _count(changes: "QuerySet[Change]", task: _TaskKey) -> int:
    return _of_task(changes, task).order_by()[: MAX_COUNTED + 1].count()
