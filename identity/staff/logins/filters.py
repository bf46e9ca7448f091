"""Filters of the list of logins: by result, who can fix it, and part of the taxpayer.

Each uses an index.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import slugify
from django.utils.translation import gettext_lazy

from identity.staff.logins.login_search import BY_IT, BY_ITSELF, FOR_IT
from identity.staff.logins.reasons import ISSUED, staff_text_of
from tokens.refusals.table import REFUSALS


class ResultFilter(admin.SimpleListFilter):
    title = gettext_lazy("result")
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("issued", ISSUED),
            ("refused", gettext_lazy("Refused, any reason")),
            *((str(reason), staff_text_of(reason).what) for reason in REFUSALS),
        ]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        match self.value():
            case None | "":
                return queryset
            case "issued":
                return queryset.filter(reason="")
            case "refused":
                return queryset.exclude(reason="")
            case reason if reason in REFUSALS:
                return queryset.filter(reason=reason)
            case _:
                return queryset.none()


def fixer_key(fixed_by: str) -> str:
    """The name of a person who can fix logins, as the filter has it in an address."""
    return slugify(fixed_by)


class FixedByFilter(admin.SimpleListFilter):
    """Refused logins by who can fix them."""

    title = gettext_lazy("who can fix it")
    parameter_name = "fixed_by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        recorded = {r.fixed_by: reason for reason, r in REFUSALS.items() if r.recorded}
        return [(fixer_key(who), staff_text_of(reason).who) for who, reason in recorded.items()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if self.value() is None:
            return queryset
        return queryset.filter(
            reason__in=[r for r, row in REFUSALS.items() if fixer_key(row.fixed_by) == self.value()]
        )


class RoleFilter(admin.SimpleListFilter):
    """The part of the taxpayer that the search names; the search itself uses it."""

    title = gettext_lazy("part of the taxpayer")
    parameter_name = "role"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            (FOR_IT, gettext_lazy("For it, also through an intermediary")),
            (BY_ITSELF, gettext_lazy("For it, by itself")),
            (BY_IT, gettext_lazy("By it, as an intermediary")),
        ]

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        self._is_search = bool(request.GET.get("q", "").strip())
        super().__init__(request, params, model, model_admin)

    def has_output(self) -> bool:
        return self._is_search

    def value(self) -> str | None:
        return super().value() if self._is_search else None

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return queryset
