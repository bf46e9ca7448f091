"""A filter of a list as a table of its choices, and the choices of what ends within some days."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

EXPIRY_DAYS = (7, 30, 90)
Choices = Mapping[str, tuple[str | Promise, Q]]  # its title, and the condition on the rows


class ChoiceFilter(admin.SimpleListFilter):
    """No rows if the filter has no such choice: its chip names it, also in an export."""

    def conditions(self, at: datetime) -> Choices:
        """The choices of this moment, by their names in the address."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, title) for name, (title, _q) in self.conditions(timezone.now()).items()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if not (name := self.value()):
            return queryset
        _title, condition = self.conditions(timezone.now()).get(name, ("", None))
        return queryset.none() if condition is None else queryset.filter(condition)


def expires_within(field: str, at: datetime) -> dict[str, tuple[str | Promise, Q]]:
    """The choices *Expires within … days* of this field."""
    text = gettext_lazy("Expires within {days} days")
    return {
        str(days): (
            format_lazy(text, days=days),
            Q(**{f"{field}__gte": at, f"{field}__lt": at + timedelta(days=days)}),
        )
        for days in EXPIRY_DAYS
    }
