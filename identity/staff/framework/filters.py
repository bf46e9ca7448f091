"""What filters of lists share: an expiry within some days, and a choice that is not there."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

EXPIRY_DAYS = (7, 30, 90)


def expiry_choices() -> list[tuple[str, Any]]:
    """The choices "expires within … days", for `lookups` of a filter."""
    text = gettext_lazy("Expires within {days} days")
    return [(str(days), format_lazy(text, days=days)) for days in EXPIRY_DAYS]


def filtered(queryset: "QuerySet[Any]", choice: str | None, wanted: Q | None) -> "QuerySet[Any]":
    """The rows of this choice: all without one, none if the filter has no such choice.

    Its chip names the choice, so all rows would be a lie: in the list, and in its export.
    """
    if not choice:
        return queryset
    return queryset.none() if wanted is None else queryset.filter(wanted)


def expires_within(field: str, choice: str | None, at: datetime) -> Q | None:
    """The condition of one of `expiry_choices` on this field; None for any other choice."""
    if choice not in {str(days) for days in EXPIRY_DAYS}:
        return None
    end = at + timedelta(days=int(choice))
    return Q(**{f"{field}__gte": at, f"{field}__lt": end})
