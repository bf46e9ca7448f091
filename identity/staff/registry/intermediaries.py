"""Intermediaries, taxpayers that may act for others: the list, the page, the tasks (contract 4)."""

from datetime import datetime
from typing import ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext_lazy, ngettext_lazy

from identity.staff.display import moment
from identity.staff.expiring import extend_tasks
from identity.staff.framework import badges, fields
from identity.staff.framework.bulk_tasks import BulkTask
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.filters import Choices, StateFilter, expires_within
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import Views
from identity.staff.framework.tasks import Button, Task, TaskForm, task, tasks_by_reason
from identity.staff.imports.import_task import ImportTask
from identity.staff.registry.granted_permissions import listed_permissions
from taxpayers.models import GrantedPermission, Intermediary, Taxpayer
from taxpayers.services import intermediaries
from taxpayers.standing.loaded_rows import with_credentials

MAX_SYSTEM_USERS = 20
MIN_TERM_LENGTH, MAX_TERM_LENGTH, MAX_SUGGESTIONS = 3, 255, 10


class AutocompleteAdmin(ExportingAdmin):
    """A list that suggests taxpayers while a user types a TIN or a name."""

    def suggest_view(self, request: HttpRequest) -> JsonResponse:
        """The first taxpayers that match the term `q`; only for people who may see the list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        term = request.GET.get("q", "").strip()
        # A NUL is in no identifier and no name, and PostgreSQL refuses to look for one.
        if not MIN_TERM_LENGTH <= len(term) <= MAX_TERM_LENGTH or "\0" in term:
            return JsonResponse({"suggestions": []})
        rows, _may_repeat = self.get_search_results(request, self.get_queryset(request), term)
        taxpayers = [getattr(row, "taxpayer", row) for row in rows[:MAX_SUGGESTIONS]]
        found = [{"value": str(row.identifier), "label": row.name} for row in taxpayers]
        return JsonResponse({"suggestions": found})

    def views(self) -> Views:
        yield "suggest", "suggest/", self.suggest_view
        yield from super().views()


class RegisterIntermediaryForm(TaskForm):
    taxpayer = fields.TaxpayerField()
    until = fields.EndField(label=gettext_lazy("Last day"))


RegisterIntermediary = task(
    Task,
    intermediaries.REGISTER_INTERMEDIARY,
    button_label=gettext_lazy("Register as intermediary"),
    variant="primary",
    form=RegisterIntermediaryForm,
)


class ImportIntermediaries(ImportTask):
    kind_name = "intermediaries"
    column_notes = gettext_lazy(
        "rob can be empty. active_until is the last day; empty means no end date."
    )
    example = (("C2590001010", "", "2028-12-31"), ("C2590001020", "202301045678", ""))
    counted = ngettext_lazy("{count} intermediary", "{count} intermediaries", "count")


DeactivateIntermediary = task(
    Task,
    intermediaries.DEACTIVATE_INTERMEDIARY,
    template="staff/registry/refused_logins.html",
)


def own_system_users(owner: Taxpayer, at: datetime) -> Context:
    """The newest system users of a taxpayer, each with its state, and whether there are more."""
    found = list(with_credentials(owner.system_users.order_by("-pk"))[: MAX_SYSTEM_USERS + 1])
    rows = [(row, badges.badge_of_system_user(row, at)) for row in found[:MAX_SYSTEM_USERS]]
    return {"rows": rows, "has_more": len(found) > MAX_SYSTEM_USERS}


class IntermediaryStateFilter(StateFilter):
    def conditions(self, at: datetime) -> Choices:
        over = Q(active_until__lt=at)
        return {
            "active": (badges.ACTIVE, Q(is_active=True) & ~over),
            "not_active": (badges.NOT_ACTIVE, Q(is_active=False)),
            **expires_within("active_until", at),
            "expired": (badges.EXPIRED, over),
        }


class IntermediaryAdmin(AutocompleteAdmin):
    exported = (
        *(("tin", "taxpayer.tin"), ("rob", "taxpayer.rob"), ("name", "taxpayer.name")),
        *(("active", "is_active"), "active_until", ("registered_at", "created_at")),
        ("taxpayer_active", "taxpayer.is_active"),
    )
    list_display = (
        column("identifier", gettext_lazy("TIN"), lambda row: row.taxpayer.identifier),
        column("name", gettext_lazy("name"), lambda row: row.taxpayer.name),
        "state",
        column("until", gettext_lazy("active until"), lambda row: moment(row.active_until)),
    )
    linked_columns = 2
    list_filter = (IntermediaryStateFilter,)
    joined = ("taxpayer",)
    paths_to_taxpayers = ("taxpayer__",)
    search_help_text = gettext_lazy("TIN, ROB number, or name")
    record_template = "staff/registry/intermediary.html"
    badge = staticmethod(badges.badge_of_intermediary)
    bulk_tasks = (
        BulkTask(
            extend_tasks.ExtendIntermediary,
            gettext_lazy("Extend the selected intermediaries"),
            gettext_lazy("They may act for other taxpayers for longer."),
            extend_tasks.BulkExtendForm,
        ),
    )
    tasks: ClassVar = (
        RegisterIntermediary,
        ImportIntermediaries,
        extend_tasks.ExtendIntermediary,
        extend_tasks.EndIntermediaryEarlier,
        *tasks_by_reason(vars(intermediaries), DeactivateIntermediary),
    )

    def buttons(self, request: HttpRequest, record: Intermediary, at: datetime) -> list[Button]:
        grant, acting = (GrantedPermission, "grant_permission"), str(record.taxpayer.identifier)
        related = self.related_buttons(request, grant, intermediary=acting)
        return [*related, *super().buttons(request, record, at)]

    def record_context(self, request: HttpRequest, record: Intermediary, at: datetime) -> Context:
        return {
            "taxpayer_state": badges.badge_of_taxpayer(record.taxpayer, at),
            "system_users": own_system_users(record.taxpayer, at),
            "granted": listed_permissions(request, record.permissions, at),
        }
