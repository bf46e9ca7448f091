"""Intermediaries: taxpayers in the role of acting for others (contract 4)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldBooleanWidget

from identity.staff.framework.autocomplete import SuggestingAdmin
from identity.staff.framework.badges import badge_of_intermediary, badge_of_taxpayer
from identity.staff.framework.edit_conflicts import EditConflictForm
from identity.staff.framework.forms import LastDayField, ReasonField, TaskForm, TaxpayerField
from identity.staff.framework.search import taxpayer_ways
from identity.staff.framework.tasks import Button, Task
from identity.staff.registry import exports
from identity.staff.registry.granting import GrantPermission
from identity.staff.registry.history import recent_changes
from identity.staff.registry.permissions import listed_permissions
from identity.staff.templatetags.staff import moment
from taxpayers.models import GrantedPermission, Intermediary
from taxpayers.services import Author, register_intermediary, set_intermediary_active


class RegisterIntermediaryForm(TaskForm):
    taxpayer = TaxpayerField()
    until = LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Without a day the role has no end."),
    )


class RegisterIntermediary(Task):
    name = "register_intermediary"
    title = gettext_lazy("Register an intermediary")
    button = gettext_lazy("Make it an intermediary")
    says = gettext_lazy(
        "The taxpayer may act for others, for each of them only as far as they permit it."
    )
    icon = "handshake"
    variant = "primary"
    form = RegisterIntermediaryForm
    is_for_record = False

    def perform(
        self, record: None, data: dict[str, Any], *, by: Author, at: datetime
    ) -> Intermediary:
        return register_intermediary(taxpayer=data["taxpayer"], until=data["until"], by=by, at=at)

    def done(self, result: Intermediary) -> str:
        return _("{name} is an intermediary.").format(name=result)


class ChangeIntermediaryForm(EditConflictForm):
    overwrites: ClassVar = {"is_active": "is_active", "until": "active_until"}

    is_active = forms.BooleanField(
        label=gettext_lazy("It may act for others"), required=False, widget=UnfoldBooleanWidget
    )
    until = LastDayField(
        label=gettext_lazy("Last day"),
        required=False,
        help_text=gettext_lazy("Without a day the role has no end."),
    )
    reason = ReasonField()


class ChangeIntermediary(Task):
    name = "change_intermediary"
    title = gettext_lazy("Change the role")
    button = gettext_lazy("Change the role")
    says = gettext_lazy(
        "While it is not active, every login on behalf of others is refused. Its permissions are"
        " kept."
    )
    form = ChangeIntermediaryForm

    def initial(self, request: HttpRequest, record: Intermediary, at: datetime) -> dict[str, Any]:
        until = record.active_until
        return {
            "is_active": record.is_active,
            "until": timezone.localtime(until).date() if until else None,
        }

    @transaction.atomic
    def perform(
        self, record: Intermediary, data: dict[str, Any], *, by: Author, at: datetime
    ) -> Intermediary:
        entered = ChangeIntermediaryForm.entered(record, data)
        return set_intermediary_active(intermediary=record, by=by, at=at, **entered)

    def done(self, result: Intermediary) -> str:
        return _("The role of {name} is changed.").format(name=result)


class IntermediaryAdmin(SuggestingAdmin):
    export = exports.INTERMEDIARIES
    list_display = ("identifier", "name", "state", "until")
    list_display_links = ("identifier", "name")
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    list_select_related = ("taxpayer",)
    ordering = ("-pk",)
    search_fields = ("taxpayer__tin",)
    search_help_text = gettext_lazy("TIN, TIN:ROB, or how the name begins")
    record_template = "staff/registry/intermediary.html"
    tasks: ClassVar = (RegisterIntermediary, ChangeIntermediary)

    def ways_to_find(self, term: str) -> Iterable[Q]:
        return taxpayer_ways(term, "taxpayer__")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        return super().get_queryset(request).select_related("taxpayer")

    def buttons(self, request: HttpRequest, record: Intermediary, at: datetime) -> list[Button]:
        named = str(record.taxpayer.identifier)
        return [
            *self.button_elsewhere(request, GrantedPermission, GrantPermission, intermediary=named),
            *super().buttons(request, record, at),
        ]

    def record_context(
        self, request: HttpRequest, record: Intermediary, at: datetime
    ) -> dict[str, Any]:
        return {
            "state": badge_of_intermediary(record, at),
            "taxpayer_state": badge_of_taxpayer(record.taxpayer),
            "granted": listed_permissions(record.permissions, at),
            "changes": recent_changes(request, record),
        }

    @admin.display(description=gettext_lazy("TIN"))
    def identifier(self, row: Intermediary) -> str:
        return str(row.taxpayer.identifier)

    @admin.display(description=gettext_lazy("name"))
    def name(self, row: Intermediary) -> str:
        return row.taxpayer.name

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Intermediary) -> str:
        return badge_of_intermediary(row, timezone.now()).badge

    @admin.display(description=gettext_lazy("active until"))
    def until(self, row: Intermediary) -> str:
        return moment(row.active_until)
