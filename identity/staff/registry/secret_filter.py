"""System users by the end of their secrets: a secret has no list of its own (contract 3)."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from taxpayers.models import ClientSecret


class SecretEndsFilter(admin.SimpleListFilter):
    """Those with a live secret that ends soon."""

    title = gettext_lazy("a secret expires")
    parameter_name = "secret"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("7", gettext_lazy("Within 7 days")),
            ("30", gettext_lazy("Within 30 days")),
            ("90", gettext_lazy("Within 90 days")),
        ]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if self.value() not in ("7", "30", "90"):
            return queryset
        at = timezone.now()
        ending = ClientSecret.objects.filter(
            slot__isnull=False,
            expires_at__gte=at,
            expires_at__lt=at + timedelta(days=int(self.value() or 0)),
        )
        return queryset.filter(pk__in=ending.values("system_user"))
