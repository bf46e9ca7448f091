"""The filter of system users by the expiry of their secrets, which have no list (contract 3)."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.filters import expires_within, expiry_choices
from taxpayers.models import ClientSecret


class SecretExpiryFilter(admin.SimpleListFilter):
    """System users with a live secret that expires soon."""

    title = gettext_lazy("expiry of a secret")
    parameter_name = "secret"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return expiry_choices()

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        expiring = expires_within("expires_at", self.value(), timezone.now())
        if expiring is None:
            return queryset
        live = ClientSecret.objects.filter(expiring, slot__isnull=False)
        return queryset.filter(pk__in=live.values("system_user"))
