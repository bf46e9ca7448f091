"""Filters of system users by their secrets, which have no list (contract 3)."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.filters import expires_within, expiry_choices, filtered
from taxpayers.models import Credential


def without_valid_secret(at: datetime) -> Q:
    """The condition on system users whose badge says so, also of keys: none, or each has ended."""
    return Q(last_secret_ends_at__isnull=True) | Q(last_secret_ends_at__lt=at)


class SecretExpiryFilter(admin.SimpleListFilter):
    """System users with a secret, key or certificate that expires soon, or whose last one did."""

    title = gettext_lazy("expiry of a secret, key or certificate")
    parameter_name = "secret"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("expired", gettext_lazy("Expired, no valid one left")), *expiry_choices()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        at = timezone.now()
        if self.value() == "expired":
            return queryset.filter(last_secret_ends_at__lt=at)
        # One that is revoked, or expired and replaced, has no slot.
        live = Credential.objects.filter(slot__isnull=False)
        expiring = expires_within("expires_at", self.value(), at)
        wanted = expiring and Q(pk__in=live.filter(expiring).values("system_user"))
        return filtered(queryset, self.value(), wanted)
