"""Extends records of several kinds in one task; each by the task of its kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment_text
from identity.staff.expiring.extend_forms import BulkExtendForm
from identity.staff.expiring.kinds import KIND_NAMES, EndingKind
from identity.staff.expiring.listing import ExpiringRow
from identity.staff.framework.bulk_tasks import MAX_RECORDS, BulkPage
from identity.staff.framework.lists import key_in
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Button, Preview, Task
from taxpayers.credential_kind import CredentialKind

RENEW = BulkPage(
    gettext_lazy("Extend the selected records"),
    gettext_lazy(
        "Each row shows the last day now and the new one. A secret, key or certificate is never"
        " extended: issue or register a new one."
    ),
    BulkExtendForm,
    icon="event_available",
)

_NOT_EXTENDED = {
    CredentialKind.SECRET: gettext_lazy("The secret {secret} ends {moment}. Issue a new one."),
    CredentialKind.KEY: gettext_lazy("The key {secret} ends {moment}. Register a new one."),
    CredentialKind.CERTIFICATE: gettext_lazy(
        "The registration of the certificate {secret} ends {moment}. Register it again."
    ),
}


@dataclass(frozen=True, slots=True)
class RowTask:
    """What this person can do with a row: select it to be extended, or (`link`) another task."""

    may_select: bool
    link: Button | None


class _Refused(Task):
    """Placeholder for the task of a row that is not extended here; the preview says why."""

    name = "not_extended"

    def __init__(self, task: Task, refusal: str, link: Button | None) -> None:
        super().__init__(task.admin)
        self._refusal, self._link = refusal, link

    def preview(self, record: Any, data: dict[str, Any], at: datetime) -> Preview:
        return Preview(refusal=self._refusal, instead=self._link)


def task_of(request: HttpRequest, row: ExpiringRow) -> RowTask:
    """What this person can do with a row of the list."""
    task = _task(row.kind, row.page)
    if row.to_do or not task.is_allowed(request):
        return RowTask(may_select=False, link=None)
    if row.kind.is_extended:
        return RowTask(may_select=True, link=None)
    return RowTask(may_select=False, link=task.button_for(row.page))


def chosen_of(request: HttpRequest, values: Sequence[str]) -> list[tuple[Task, Any]]:
    """The records that a form names, each with its task. Raises BadRequest, PermissionDenied."""
    keys: dict[str, list[int]] = {}
    for value in values[: MAX_RECORDS + 1]:
        name, _separator, text = value.partition(":")
        key = key_in(text)
        if name not in KIND_NAMES or key is None:
            raise BadRequest("a selected record has no such key")
        keys.setdefault(name, []).append(key)
    chosen: list[tuple[Task, Any]] = []
    for name, pks in keys.items():
        kind = KIND_NAMES[name]
        if not kind.may_be_seen(request):
            raise PermissionDenied
        found = kind.load(pks)
        chosen += [_chosen(request, kind, found[pk]) for pk in sorted(found)]
    return chosen


def _chosen(request: HttpRequest, kind: EndingKind, record: Any) -> tuple[Task, Any]:
    page = kind.page(record)
    task = _task(kind, page)
    if not task.is_allowed(request):
        return _Refused(task, _("Your role may not change this."), None), page
    if not kind.is_extended:
        text = str(_NOT_EXTENDED[record.kind])
        refusal = text.format(secret=record, moment=moment_text(record.expires_at))
        return _Refused(task, refusal, task.button_for(page)), page
    return task, record


def _task(kind: EndingKind, page: Model) -> Task:
    registered = admin.site.get_model_admin(type(page))
    assert isinstance(registered, RecordAdmin)  # noqa: S101 - so are all of ours
    return next(task for task in registered.get_tasks() if task.name == kind.task_name(page))
