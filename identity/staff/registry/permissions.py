"""Granted permissions and permission codes: the lists and the pages (contract 4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Manager, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import Badge, badge_of_permission
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.search import taxpayer_ways
from identity.staff.registry import exports
from identity.staff.registry.granting import GrantPermission, RevokePermission, SetPermissionCode
from identity.staff.registry.history import recent_changes
from identity.staff.templatetags.staff import moment
from taxpayers.models import GrantedPermission, PermissionCode
from taxpayers.services.permissions import codes_of

MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class ListedPermissions:
    """The newest permissions of somebody, and whether there are more."""

    rows: list[tuple[GrantedPermission, Badge]]
    has_more: bool


def listed_permissions(granted: "Manager[GrantedPermission]", at: datetime) -> ListedPermissions:
    """What is shown on the page of a taxpayer or an intermediary, in two queries."""
    rows = granted.select_related("taxpayer", "intermediary__taxpayer").prefetch_related("codes")
    newest = list(rows.order_by("-pk")[: MOST_LISTED + 1])
    shown = [(row, badge_of_permission(row, at)) for row in newest[:MOST_LISTED]]
    return ListedPermissions(shown, has_more=len(newest) > MOST_LISTED)


class PermissionStateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("in_force", gettext_lazy("In force")),
            ("7", gettext_lazy("Ends within 7 days")),
            ("30", gettext_lazy("Ends within 30 days")),
            ("90", gettext_lazy("Ends within 90 days")),
            ("ended", gettext_lazy("Ended")),
            ("revoked", gettext_lazy("Revoked")),
        ]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        at = timezone.now()
        not_over = Q(valid_until__isnull=True) | Q(valid_until__gte=at)
        match self.value():
            case "in_force":
                return queryset.filter(not_over, revoked_at=None, valid_from__lte=at)
            case "ended":
                return queryset.filter(revoked_at=None, valid_until__lt=at)
            case "revoked":
                return queryset.filter(revoked_at__isnull=False)
            case str(days) if days in ("7", "30", "90"):
                end = at + timedelta(days=int(days))
                return queryset.filter(revoked_at=None, valid_until__gte=at, valid_until__lt=end)
        return queryset


class GrantedPermissionAdmin(ExportingAdmin):
    export = exports.PERMISSIONS
    list_display = ("represented", "acting", "codes_shown", "state", "begins", "ends")
    list_display_links = ("represented",)
    list_filter = (PermissionStateFilter,)
    ordering = ("-pk",)
    search_fields = ("taxpayer__tin",)
    search_help_text = gettext_lazy("TIN or name of the taxpayer or the intermediary")
    record_template = "staff/registry/permission.html"
    tasks: ClassVar = (GrantPermission, RevokePermission)

    def list_title(self) -> Any:
        return gettext_lazy("permissions")

    def record_title(self, record: GrantedPermission) -> str:
        return f"{record.taxpayer.identifier} → {record.intermediary.taxpayer.identifier}"

    def ways_to_find(self, term: str) -> Iterable[Q]:
        return [
            *taxpayer_ways(term, "taxpayer__"),
            *taxpayer_ways(term, "intermediary__taxpayer__"),
        ]

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.select_related("taxpayer", "intermediary__taxpayer").prefetch_related("codes")

    def record_context(
        self, request: HttpRequest, record: GrantedPermission, at: datetime
    ) -> dict[str, Any]:
        return {
            "state": badge_of_permission(record, at),
            "codes": record.codes.order_by("code"),
            "changes": recent_changes(request, record),
        }

    @admin.display(description=gettext_lazy("represented taxpayer"))
    def represented(self, row: GrantedPermission) -> str:
        return str(row.taxpayer)

    @admin.display(description=gettext_lazy("intermediary"))
    def acting(self, row: GrantedPermission) -> str:
        return str(row.intermediary)

    @admin.display(description=gettext_lazy("permitted"))
    def codes_shown(self, row: GrantedPermission) -> str:
        return ", ".join(codes_of(row))

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: GrantedPermission) -> str:
        return badge_of_permission(row, timezone.now()).badge

    @admin.display(description=gettext_lazy("from"))
    def begins(self, row: GrantedPermission) -> str:
        return moment(row.valid_from)

    @admin.display(description=gettext_lazy("until"))
    def ends(self, row: GrantedPermission) -> str:
        return moment(row.valid_until)


class PermissionCodeAdmin(RecordAdmin):
    list_display = ("code", "description")
    ordering = ("code",)
    record_template = "staff/registry/permission_code.html"
    tasks: ClassVar = (SetPermissionCode,)

    def buttons(self, request: HttpRequest, record: PermissionCode, at: datetime) -> list[Any]:
        return self.button_elsewhere(
            request,
            PermissionCode,
            SetPermissionCode,
            code=record.code,
            description=record.description,
        )

    def record_context(
        self, request: HttpRequest, record: PermissionCode, at: datetime
    ) -> dict[str, Any]:
        return {"changes": recent_changes(request, record)}
