"""The report of changes for auditors: a period, grouped by task, with links to the records."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.lists import key_in
from identity.staff.history.changes import HistoryEntry, action_of, entry_of
from identity.staff.history.grouping import (
    MAX_COUNTED,
    ChangeGroup,
    changes_of_task,
    group_changes,
)
from identity.staff.history.report_form import ReportForm, preset_links, query_of
from taxpayers.models import Change, HistoryCheck
from taxpayers.standing.as_of import history_begins_at

TITLE = gettext_lazy("Report of changes")
TASKS_ON_A_PAGE, CHANGES_ON_A_PAGE = 25, 100


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One task: what was done, who did it, from where and why, and its first records."""

    group: ChangeGroup
    actions: list[Any]
    entries: list[HistoryEntry]
    query_of_person: str

    @property
    def first(self) -> Change:
        return self.group.rows[0]

    @property
    def is_one(self) -> bool:
        return self.group.count == 1

    @property
    def count(self) -> str:
        return f"{MAX_COUNTED:,}+" if self.group.is_capped else f"{self.group.count:,}"

    @property
    def why(self) -> str:
        """The reason; of a task it may be stored with one of its changes only."""
        return next((row.reason for row in self.group.rows if row.reason), "")

    @property
    def about(self) -> str:
        """The record, if all changes of the task are of one."""
        labels = {row.label for row in self.group.rows}
        return labels.pop() if len(labels) == 1 and not self.has_more else ""

    @property
    def has_more(self) -> bool:
        return self.group.count > len(self.entries)


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
    return ReportLine(
        group=group,
        actions=list(dict.fromkeys(action_of(row) for row in group.rows)),
        entries=[entry_of(request, row) for row in group.rows],
        query_of_person=query_of(request, by=group.rows[0].by),
    )


def _change(text: str) -> Change | None:
    key = key_in(text)
    return None if key is None else Change.objects.filter(pk=key).first()
