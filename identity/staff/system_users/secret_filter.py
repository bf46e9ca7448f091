"""The filter of system users by the expiry of their secrets, which have no list (contract 3)."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.filters import expires_within, expiry_choices
from taxpayers.models import ClientSecret


class SecretExpiryFilter(admin.SimpleListFilter):
    """System users with a secret that expires soon, or that expired and was not replaced."""

    title = gettext_lazy("expiry of a secret")
    parameter_name = "secret"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("expired", gettext_lazy("Expired, no valid secret left")), *expiry_choices()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        at = timezone.now()
        # One that is revoked, or expired and replaced, has no slot.
        secrets = ClientSecret.objects.filter(slot__isnull=False)
        if self.value() == "expired":
            expired = secrets.filter(expires_at__lt=at).values("system_user")
            valid = secrets.filter(expires_at__gte=at, system_user=OuterRef("pk"))
            return queryset.filter(~Exists(valid), pk__in=expired)
        expiring = expires_within("expires_at", self.value(), at)
        if expiring is None:
            return queryset
        return queryset.filter(pk__in=secrets.filter(expiring).values("system_user"))
