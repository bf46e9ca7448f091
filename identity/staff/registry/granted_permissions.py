"""Granted permissions: the list and the page of one (contract 4)."""

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from django.db.models import Manager, Q
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

from identity.staff.display import evidence_text, moment
from identity.staff.expiring import extend_tasks
from identity.staff.framework.badges import badge_of_permission, facts_of
from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.filters import Choices, StateFilter, expires_within
from identity.staff.framework.lists import Context, column
from identity.staff.framework.related import revocations_of
from identity.staff.framework.tasks import Button, tasks_by_reason
from identity.staff.imports.import_task import ImportTask
from identity.staff.registry.permission_codes import GrantPermission, RevokePermission
from taxpayers.facts.validity import is_over
from taxpayers.models import GrantedPermission
from taxpayers.services import granted_permissions
from taxpayers.services.granted_permissions import codes_of

MAX_LISTED = 20


def listed_permissions(
    request: HttpRequest, granted: "Manager[GrantedPermission]", at: datetime
) -> Context:
    """Those of a taxpayer or an intermediary, valid ones first, with state and revocation."""
    rows = granted.select_related("taxpayer", "intermediary__taxpayer").prefetch_related("codes")
    newest, valid = rows.order_by("-pk"), in_force(at)
    listed = list(newest.filter(valid)[: MAX_LISTED + 1])
    if (room := MAX_LISTED + 1 - len(listed)) > 0:
        listed += newest.exclude(pk__in=[row.pk for row in listed])[:room]
    shown = listed[:MAX_LISTED]
    revoked = revocations_of(request, shown)
    return {
        "rows": [(row, badge_of_permission(row, at), revoked.get(row.pk)) for row in shown],
        "has_more": len(listed) > MAX_LISTED,
    }


def in_force(at: datetime) -> Q:
    """The permissions that are valid now."""
    not_over = Q(valid_until__isnull=True) | Q(valid_until__gte=at)
    return not_over & Q(revoked_at=None, valid_from__lte=at)


class ImportPermissions(ImportTask):
    kind_name = "permissions"
    column_notes = gettext_lazy(
        "taxpayer and intermediary are TIN or TIN:ROB. codes are separated by blanks. valid_from is"
        " the first day; empty means now. valid_until is the last day; empty means no end date."
        " paper_form is the number of the form that the taxpayer has signed."
    )
    example = (
        ("C2581234010", "C2590001010", "documents:submit documents:view", "", "2028-12-31", "F-1"),
        ("C2581234080:202301045678", "C2590001010", "documents:view", "2027-01-01", "", ""),
    )
    counted = ngettext_lazy("{count} permission", "{count} permissions", "count")


class PermissionStateFilter(StateFilter):
    def conditions(self, at: datetime) -> Choices:
        not_revoked = Q(revoked_at=None)
        expiring = expires_within("valid_until", at)
        return {
            "in_force": (gettext_lazy("Valid"), in_force(at)),
            **{days: (title, ends & not_revoked) for days, (title, ends) in expiring.items()},
            "expired": (gettext_lazy("Expired"), not_revoked & Q(valid_until__lt=at)),
            "revoked": (gettext_lazy("Revoked"), Q(revoked_at__isnull=False)),
        }


class GrantedPermissionAdmin(ExportingAdmin):
    exported = (
        *(("taxpayer", "taxpayer.identifier"), ("taxpayer_name", "taxpayer.name")),
        ("intermediary", "intermediary.taxpayer.identifier"),
        ("intermediary_name", "intermediary.taxpayer.name"),
        ("codes", lambda row: " ".join(codes_of(row))),
        *("valid_from", "valid_until", "revoked_at"),
        ("evidence", lambda row: evidence_text(row.evidence)),
        ("granted_at", "created_at"),
    )
    list_display = (
        column("represented", gettext_lazy("represented taxpayer"), lambda row: row.taxpayer),
        column("acting", gettext_lazy("intermediary"), lambda row: row.intermediary),
        column(
            "codes_shown", gettext_lazy("permission codes"), lambda row: ", ".join(codes_of(row))
        ),
        "state",
        column("starts", gettext_lazy("from"), lambda row: moment(row.valid_from)),
        column("expires", gettext_lazy("until"), lambda row: moment(facts_of(row).ended_at)),
    )
    list_filter = (PermissionStateFilter,)
    joined, prefetched = ("taxpayer", "intermediary__taxpayer"), ("codes",)
    paths_to_taxpayers = ("taxpayer__", "intermediary__taxpayer__")
    search_help_text = gettext_lazy("TIN or name of either side")
    record_template = "staff/registry/permission.html"
    badge = staticmethod(badge_of_permission)
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
            extend_tasks.ExtendPermission,
            gettext_lazy("Extend the selected permissions"),
            gettext_lazy("The intermediaries may act for the taxpayers for longer."),
            extend_tasks.BulkExtendPermissionForm,
        ),
    )
    tasks: ClassVar = (
        GrantPermission,
        ImportPermissions,
        extend_tasks.ExtendPermission,
        extend_tasks.EndPermissionEarlier,
        *tasks_by_reason(vars(granted_permissions), RevokePermission),
    )

    def list_title(self) -> str:
        return gettext("Permissions")

    def record_title(self, record: GrantedPermission) -> str:
        return f"{record.taxpayer.identifier} → {record.intermediary.taxpayer.identifier}"

    def buttons(
        self, request: HttpRequest, record: GrantedPermission, at: datetime
    ) -> list[Button]:
        buttons = super().buttons(request, record, at)
        if not is_over(facts_of(record).ended_at, at):
            return buttons
        again = self.related_buttons(
            request,
            (GrantedPermission, "grant_permission"),
            taxpayer=str(record.taxpayer.identifier),
            intermediary=str(record.intermediary.taxpayer.identifier),
            codes=" ".join(codes_of(record)),
        )
        return [*buttons, *(replace(one, title=gettext_lazy("Grant again")) for one in again)]

    def record_context(
        self, request: HttpRequest, record: GrantedPermission, at: datetime
    ) -> Context:
        return {
            "revocation": revocations_of(request, [record]).get(record.pk),
            "codes": record.codes.order_by("code"),
        }
