"""The report of changes for auditors: a period, grouped by task, with links to the records.

The changes of a task have the same id, moment and person, and follow each other; without an id, the
moment and the person are the task. A page reads a bounded number of changes: behind a large task,
such as an import of 500,000 taxpayers, it goes on without reading through it.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework.changes import HistoryEntry, entry_of
from identity.staff.framework.lists import key_in
from identity.staff.history.report_form import ReportForm, preset_links, query_of
from taxpayers.models import Change, HistoryCheck
from taxpayers.services.history import of_task
from taxpayers.standing.as_of import history_begins_at

BATCH = 200
MAX_SHOWN = 20
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """One task: its newest changes, at most MAX_SHOWN, and how many it has."""

    rows: list[Change]
    count: int  # MAX_COUNTED + 1: more than that


def group_changes(
    changes: "QuerySet[Change]", size: int, after: Change | None = None
) -> tuple[list[ChangeGroup], bool]:
    """The first `size` tasks, in ORDER, behind that of `after`; and whether there are more."""
    groups: list[ChangeGroup] = []
    last = changes_of_task(after).last() if after else None
    while len(groups) <= size and (batch := _next(changes, last)):
        runs = [list(run) for _task, run in groupby(batch, key=_task_of)]
        is_cut = len(batch) == BATCH  # the last run may go on
        if is_cut and len(runs) > 1:
            runs.pop()  # read again, with its end
            is_cut = False
        for run in runs:
            count = len(run)
            if is_cut:
                count = _of_task(changes, run[0]).order_by()[: MAX_COUNTED + 1].count()
            groups.append(ChangeGroup(run[:MAX_SHOWN], count))
        last = changes_of_task(run[0]).last() if is_cut else run[-1]
    return groups[:size], len(groups) > size


def changes_of_task(change: Change) -> "QuerySet[Change]":
    """All changes of the same task, the newest first."""
    return _of_task(Change.objects.all(), change)


def _task_of(change: Change) -> tuple[datetime, str, UUID | None]:
    return change.at, change.by, change.task_id


def _of_task(changes: "QuerySet[Change]", change: Change) -> "QuerySet[Change]":
    if change.task_id is not None:
        return of_task(changes, change.task_id)
    same_moment = changes.filter(at=change.at, by=change.by, task_id__isnull=True)
    return same_moment.order_by("-id")


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


TITLE = gettext_lazy("Report of changes")
TASKS_ON_A_PAGE, CHANGES_ON_A_PAGE = 25, 100


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One task: its newest changes, how many it has, and what finds all by the same person."""

    entries: list[HistoryEntry]
    changes: int
    query_of_person: str

    @property
    def first(self) -> Change:
        return self.entries[0].row

    @property
    def actions(self) -> list[Any]:
        return list(dict.fromkeys(entry.action for entry in self.entries))

    @property
    def is_one(self) -> bool:
        return self.changes == 1

    @property
    def count(self) -> str:
        return f"{MAX_COUNTED:,}+" if self.changes > MAX_COUNTED else f"{self.changes:,}"

    @property
    def why(self) -> str:
        """The reason; of a task it may be stored with one of its changes only."""
        return next((entry.row.reason for entry in self.entries if entry.row.reason), "")

    @property
    def about(self) -> str:
        """The record, if all changes of the task are of one."""
        labels = {entry.row.label for entry in self.entries}
        return labels.pop() if len(labels) == 1 and not self.has_more else ""

    @property
    def has_more(self) -> bool:
        return self.changes > len(self.entries)


def report_context(request: HttpRequest) -> dict[str, Any]:
    """The form, the presets, and one page of tasks."""
    form = ReportForm(request.GET)
    context = {
        "form": form,
        "title": TITLE,
        "presets": preset_links(request),
        "check": HistoryCheck.objects.order_by("-pk").first(),
        "begins_at": history_begins_at(),
    }
    if not form.is_valid():
        return context
    after = _change(request.GET.get("after", ""))
    groups, has_more = group_changes(form.changes(), TASKS_ON_A_PAGE, after)
    by = form.cleaned_data["by"]
    return context | {
        "title": _("Changes by {who}").format(who=by) if by else TITLE,
        "lines": [line_of(request, group) for group in groups],
        "query": query_of(request),
        "newest_url": f"?{query_of(request)}" if after else "",
        "older_url": f"?{query_of(request, after=groups[-1].rows[0].pk)}" if has_more else "",
    }


def task_context(request: HttpRequest, change: Change) -> dict[str, Any]:
    """All changes of the task of this change, one page of them."""
    rows = changes_of_task(change)
    after = _change(request.GET.get("after", ""))
    if after is not None:
        rows = rows.filter(pk__lt=after.pk)
    found = list(rows[: CHANGES_ON_A_PAGE + 1])
    shown, has_more = found[:CHANGES_ON_A_PAGE], len(found) > CHANGES_ON_A_PAGE
    return {
        "title": _("Changes of one task"),
        "change": change,
        "entries": [entry_of(request, row) for row in shown],
        "newest_url": "?" if after else "",
        "older_url": f"?after={shown[-1].pk}" if has_more else "",
    }


def line_of(request: HttpRequest, group: ChangeGroup) -> ReportLine:
    """The task as the pages show it."""
    entries = [entry_of(request, row) for row in group.rows]
    return ReportLine(entries, group.count, query_of(request, by=group.rows[0].by))


def _change(text: str) -> Change | None:
    key = key_in(text)
    return None if key is None else Change.objects.filter(pk=key).first()
