"""Requests to taxpayers: the list, the page of one, and what staff enter from paper forms."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy

from identity.staff.display import moment
from identity.staff.framework import fields
from identity.staff.framework.badges import Badge, badge_of_permission
from identity.staff.framework.filters import Choices, StateFilter
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Task, TaskForm, task
from taxpayers.models import PermissionCode, PermissionRequest, Taxpayer
from taxpayers.models.permission_request import APPROVED, DECLINED, EXPIRED, OPEN, WITHDRAWN
from taxpayers.services import decisions
from taxpayers.services.permission_requests import present_permissions

_BADGES = {
    OPEN: Badge(gettext_lazy("Open"), "warning"),
    APPROVED: Badge(gettext_lazy("Approved"), "good"),
    DECLINED: Badge(gettext_lazy("Declined"), "bad"),
    WITHDRAWN: Badge(gettext_lazy("Withdrawn"), "neutral"),
    EXPIRED: Badge(gettext_lazy("Expired"), "neutral"),
}


def _taxpayer_of(row: PermissionRequest) -> Taxpayer | None:
    return Taxpayer.objects.filter(tin=row.tin, rob=row.rob).first()


class _DecisionForm(TaskForm):
    evidence = fields.EvidenceField()
    reason = fields.ReasonField(required=False)


class ApproveForm(_DecisionForm):
    codes = fields.CheckboxesField(label=gettext_lazy("Permission codes or scopes"))
    until = fields.LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Leave empty for the last day that was asked for."),
    )
    field_order = ("codes", "until", "evidence", "reason")

    def __init__(self, *args: Any, record: PermissionRequest, **kwargs: Any) -> None:
        super().__init__(*args, record=record, **kwargs)
        asked: Any = self.fields["codes"]
        asked.choices = [(code, code) for code in record.codes.split()]


class ApproveRequest(Task):
    operation = decisions.APPROVE_PERMISSION_REQUEST
    variant = "primary"
    form = ApproveForm

    def initial(self, request: HttpRequest, record: Any, at: datetime) -> dict[str, Any]:
        return {"codes": record.codes}


ApproveConnection = task(
    ApproveRequest, decisions.APPROVE_CONNECTION, template="staff/registry/approve_connection.html"
)
DeclineRequest = task(Task, decisions.DECLINE_PERMISSION_REQUEST, form=_DecisionForm)
DeclineConnection = task(DeclineRequest, decisions.DECLINE_CONNECTION)


class RequestStateFilter(StateFilter):
    def conditions(self, at: datetime) -> Choices:
        late = Q(state=OPEN, expires_at__lt=at)
        return {
            OPEN: (_BADGES[OPEN].word, Q(state=OPEN, expires_at__gte=at)),
            **{s: (_BADGES[s].word, Q(state=s)) for s in (APPROVED, DECLINED, WITHDRAWN)},
            EXPIRED: (_BADGES[EXPIRED].word, late | Q(state=EXPIRED)),
        }


class PermissionRequestAdmin(RecordAdmin):
    list_display = (
        column("asked", gettext_lazy("taxpayer"), lambda row: row.asked),
        column("acting", gettext_lazy("asks"), lambda row: row.intermediary or row.name),
        column(
            "codes_shown",
            gettext_lazy("permission codes or scopes"),
            lambda row: ", ".join(row.codes.split()),
        ),
        "state",
        column("made", gettext_lazy("asked"), lambda row: moment(row.created_at)),
        column("expires", gettext_lazy("expires"), lambda row: moment(row.expires_at)),
    )
    joined = ("intermediary__taxpayer", "permission", "system_user")
    paths_to_taxpayers = ("intermediary__taxpayer__",)
    list_filter = (RequestStateFilter,)
    search_help_text = gettext_lazy("TIN, or name of the intermediary")
    record_template = "staff/registry/permission_request.html"
    badge = staticmethod(lambda row, at: _BADGES[row.state_at(at)])
    tasks: ClassVar = (ApproveRequest, ApproveConnection, DeclineRequest, DeclineConnection)

    def list_title(self) -> str:
        return gettext("Requests")

    def lead(self, record: PermissionRequest) -> str:
        asks = record.intermediary or record.name
        return f"{_taxpayer_of(record) or record.asked} → {asks}: {record.codes}"

    def search_conditions(self, term: str) -> Iterable[Q]:
        return [Q(tin=term.upper().partition(":")[0]), *super().search_conditions(term)]

    def record_context(
        self, request: HttpRequest, record: PermissionRequest, at: datetime
    ) -> Context:
        present = present_permissions(record, at)
        return {
            "asked": _taxpayer_of(record),
            "codes": PermissionCode.objects.filter(code__in=record.codes.split()).order_by("code"),
            "present": [(row, badge_of_permission(row, at)) for row in present],
        }
