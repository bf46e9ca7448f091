"""Filters of system users, each choice answered by one index."""

from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import TAXPAYER_NOT_ACTIVE
from identity.staff.framework.filters import ChoiceFilter, Choices, expires_within
from taxpayers.models import Credential, Taxpayer


class SystemUserStateFilter(ChoiceFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def conditions(self, at: datetime) -> Choices:
        inactive = Taxpayer.objects.filter(is_active=False)
        no_secret = Q(last_secret_ends_at__isnull=True) | Q(last_secret_ends_at__lt=at)
        return {
            "no_secret": (gettext_lazy("No valid secret, key or certificate"), no_secret),
            "blocked": (gettext_lazy("Blocked"), Q(blocked_at__isnull=False)),
            "expired": (gettext_lazy("Expired"), Q(expires_at__lt=at)),
            "taxpayer": (TAXPAYER_NOT_ACTIVE, Q(taxpayer__in=inactive)),
            **expires_within("expires_at", at),
        }


class SecretExpiryFilter(ChoiceFilter):
    """System users with a secret, key or certificate that expires soon, or whose last one did."""

    title = gettext_lazy("expiry of a secret, key or certificate")
    parameter_name = "secret"

    def conditions(self, at: datetime) -> Choices:
        expired = Q(last_secret_ends_at__lt=at)
        # One that is revoked, or expired and replaced, has no slot.
        live = Credential.objects.filter(slot__isnull=False)
        return {
            "expired": (gettext_lazy("Expired, no valid one left"), expired),
            **{
                name: (title, Q(pk__in=live.filter(expiring).values("system_user")))
                for name, (title, expiring) in expires_within("expires_at", at).items()
            },
        }
