"""Filters of the list of staff accounts."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.accounts.pages.state import WAITS
from identity.staff.accounts.roles import ROLES
from identity.staff.framework.filters import filtered
from identity.staff.models import SUPERUSER, WaitingChange

_ACTIVE = Q(is_active=True, is_staff=True)
_STATES: dict[str, tuple[Any, Q]] = {
    "active": (gettext_lazy("Active"), _ACTIVE),
    "not_active": (gettext_lazy("Not active"), ~_ACTIVE),
    "first_password": (gettext_lazy("First password"), Q(first_password__isnull=False)),
    "waiting": (WAITS, Q(pk__in=WaitingChange.objects.values("account_id"))),
    "no_second_step": (gettext_lazy("No second step"), Q(authenticator__isnull=True)),
}


class RoleFilter(admin.SimpleListFilter):
    title = gettext_lazy("role")
    parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        roles = [(name, role.title) for name, role in ROLES.items()]
        return [*roles, (SUPERUSER, gettext_lazy("Superuser"))]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        match self.value():
            case None:
                return queryset
            case name if name == SUPERUSER:
                return queryset.filter(is_superuser=True)
            case name if name in ROLES:
                return queryset.filter(is_superuser=False, groups__name=name)
            case _:
                return queryset.none()


class AccountStateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, title) for name, (title, _condition) in _STATES.items()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        _title, condition = _STATES.get(self.value() or "", (None, None))
        return filtered(queryset, self.value(), condition)
