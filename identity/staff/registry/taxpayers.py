"""Taxpayers: the list and the page of one (contract 4)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy

from identity.staff.display import moment, record_url
from identity.staff.framework.autocomplete import AutocompleteAdmin
from identity.staff.framework.badges import (
    badge_of_intermediary,
    badge_of_taxpayer,
)
from identity.staff.framework.export import Export, taxpayer_columns
from identity.staff.framework.lists import Context, RecordNotFound, column, state_column
from identity.staff.framework.search import taxpayer_conditions
from identity.staff.framework.tasks import Button, tasks_by_reason
from identity.staff.history.changes import recent_changes
from identity.staff.history.related import removal_of
from identity.staff.imports.kinds import ImportTaxpayers
from identity.staff.registry.granted_permissions import listed_permissions
from identity.staff.registry.intermediaries import RegisterIntermediary, own_system_users
from identity.staff.registry.issue_credentials import IssueCredentials
from identity.staff.registry.permission_tasks import GrantPermission
from identity.staff.registry.taxpayer_tasks import (
    DeactivateTaxpayer,
    RegisterTaxpayer,
    RenameTaxpayer,
)
from taxpayers import actions
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import taxpayers

# The columns that an import reads, and one that it ignores.
TAXPAYERS = Export(
    actions.EXPORT_REGISTRY,
    (
        *taxpayer_columns(lambda row: row),
        ("active", lambda row: row.is_active),
        ("registered_at", lambda row: row.created_at),
    ),
)


class TaxpayerAdmin(AutocompleteAdmin):
    export = TAXPAYERS
    list_display = (
        column("identifier", gettext_lazy("TIN"), lambda row: row.identifier),
        "name",
        state_column(lambda row, _at: badge_of_taxpayer(row)),
        column("registered", gettext_lazy("registered"), lambda row: moment(row.created_at)),
    )
    linked_columns = 2
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    ordering = ("tin", "rob")
    search_fields = ("tin",)
    search_help_text = gettext_lazy("TIN, ROB number, or name")
    record_template = "staff/registry/taxpayer.html"
    tasks: ClassVar = (
        RegisterTaxpayer,
        ImportTaxpayers,
        RenameTaxpayer,
        *tasks_by_reason(vars(taxpayers), DeactivateTaxpayer),
    )

    def search_conditions(self, term: str) -> Iterable[Q]:
        return taxpayer_conditions(term)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Of one whose import was undone, the history is left: links of before lead there."""
        try:
            return super().change_view(request, object_id, *args, **kwargs)
        except RecordNotFound:
            if removal := removal_of(request, object_id):
                return HttpResponseRedirect(record_url(removal))
            raise

    def buttons(self, request: HttpRequest, record: Taxpayer, at: datetime) -> list[Button]:
        identifier = str(record.identifier)
        related = [
            *self.related_buttons(request, SystemUser, IssueCredentials, taxpayer=identifier),
            *self.related_buttons(request, GrantedPermission, GrantPermission, taxpayer=identifier),
        ]
        if intermediary_of(record) is None:
            related += self.related_buttons(
                request, Intermediary, RegisterIntermediary, taxpayer=identifier
            )
        return [*related, *super().buttons(request, record, at)]

    def record_context(self, request: HttpRequest, record: Taxpayer, at: datetime) -> Context:
        role = intermediary_of(record)
        return {
            "state": badge_of_taxpayer(record),
            "role": role,
            "role_state": badge_of_intermediary(role, at) if role else None,
            "system_users": own_system_users(record, at),
            "granted": listed_permissions(request, record.granted, at),
            "changes": recent_changes(request, record),
        }


def intermediary_of(record: Taxpayer) -> Intermediary | None:
    """The taxpayer as an intermediary; None if it is not one."""
    return getattr(record, "intermediary", None)
