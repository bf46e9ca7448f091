"""Granted permissions: the list and the page of one (contract 4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Manager, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.display import moment
from identity.staff.expiring.extend_forms import BulkExtendForm
from identity.staff.expiring.extend_tasks import EndPermissionEarlier, ExtendPermission
from identity.staff.framework.badges import Badge, badge_of_permission, facts_of
from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.filters import expires_within, expiry_choices, filtered
from identity.staff.framework.search import taxpayer_conditions
from identity.staff.history.changes import recent_changes
from identity.staff.history.revocations import revocations_of
from identity.staff.history.time_bars import TimeBar, time_bars
from identity.staff.imports.kinds import ImportPermissions
from identity.staff.registry import exports
from identity.staff.registry.permission_tasks import GrantPermission, RevokePermission
from taxpayers.models import Change, GrantedPermission
from taxpayers.services.granted_permissions import codes_of

MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class ShownPermission:
    """A permission with its state, its time as a bar, and who revoked it and why."""

    row: GrantedPermission
    state: Badge
    bar: TimeBar
    revocation: Change | None


@dataclass(frozen=True, slots=True)
class ListedPermissions:
    """The newest permissions of a taxpayer or an intermediary, and whether there are more."""

    rows: list[ShownPermission]
    has_more: bool


def listed_permissions(
    request: HttpRequest, granted: "Manager[GrantedPermission]", at: datetime
) -> ListedPermissions:
    """The permissions on the page of a taxpayer or an intermediary, in three queries."""
    rows = granted.select_related("taxpayer", "intermediary__taxpayer").prefetch_related("codes")
    newest = list(rows.order_by("-pk")[: MAX_LISTED + 1])
    shown = shown_permissions(request, newest[:MAX_LISTED], at)
    return ListedPermissions(shown, has_more=len(newest) > MAX_LISTED)


def shown_permissions(
    request: HttpRequest, rows: list[GrantedPermission], at: datetime
) -> list[ShownPermission]:
    """The permissions as the pages show them, their bars over one axis of time."""
    revocations = revocations_of(request, rows)
    return [
        ShownPermission(row, badge_of_permission(row, at), bar, revocations.get(row.pk))
        for row, bar in zip(rows, time_bars(rows, at), strict=True)
    ]


class PermissionStateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("in_force", gettext_lazy("Valid")),
            *expiry_choices(),
            ("ended", gettext_lazy("Expired")),
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
        expiring = expires_within("valid_until", self.value(), at)
        return filtered(queryset, self.value(), expiring and expiring & Q(revoked_at=None))


class GrantedPermissionAdmin(ExportingAdmin):
    export = exports.PERMISSIONS
    list_display = ("represented", "acting", "codes_shown", "state", "starts", "expires")
    list_display_links = ("represented",)
    list_filter = (PermissionStateFilter,)
    ordering = ("-pk",)
    search_fields = ("taxpayer__tin",)
    search_help_text = gettext_lazy("TIN or part of the name of either side")
    record_template = "staff/registry/permission.html"
    bulk_tasks = (
        BulkTask(
            RevokePermission,
            gettext_lazy("Revoke the selected permissions"),
            gettext_lazy(
                "These permissions end now. This cannot be undone. Tokens that were already"
                " issued: APIs that check them with this service refuse them within 10 seconds,"
                " others accept them for up to one hour."
            ),
        ),
        BulkTask(
            ExtendPermission,
            gettext_lazy("Extend the selected permissions"),
            gettext_lazy("The intermediaries may act for the taxpayers for longer."),
            BulkExtendForm,
        ),
    )
    tasks: ClassVar = (
        GrantPermission,
        ImportPermissions,
        ExtendPermission,
        EndPermissionEarlier,
        RevokePermission,
    )

    def list_title(self) -> Any:
        return gettext_lazy("permissions")

    def record_title(self, record: GrantedPermission) -> str:
        return f"{record.taxpayer.identifier} → {record.intermediary.taxpayer.identifier}"

    def search_conditions(self, term: str) -> Iterable[Q]:
        return [
            *taxpayer_conditions(term, "taxpayer__"),
            *taxpayer_conditions(term, "intermediary__taxpayer__"),
        ]

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.select_related("taxpayer", "intermediary__taxpayer").prefetch_related("codes")

    def record_context(
        self, request: HttpRequest, record: GrantedPermission, at: datetime
    ) -> dict[str, Any]:
        return {
            "state": badge_of_permission(record, at),
            "shown": shown_permissions(request, [record], at)[0],
            "codes": record.codes.order_by("code"),
            "changes": recent_changes(request, record),
        }

    @admin.display(description=gettext_lazy("represented taxpayer"))
    def represented(self, row: GrantedPermission) -> str:
        return str(row.taxpayer)

    @admin.display(description=gettext_lazy("intermediary"))
    def acting(self, row: GrantedPermission) -> str:
        return str(row.intermediary)

    @admin.display(description=gettext_lazy("permission codes"))
    def codes_shown(self, row: GrantedPermission) -> str:
        return ", ".join(codes_of(row))

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: GrantedPermission) -> str:
        return badge_of_permission(row, timezone.now()).html

    @admin.display(description=gettext_lazy("from"))
    def starts(self, row: GrantedPermission) -> str:
        return moment(row.valid_from)

    @admin.display(description=gettext_lazy("until"))
    def expires(self, row: GrantedPermission) -> str:
        return moment(facts_of(row).ended_at)
