"""System checks of the staff pages: if staff cannot open them, or everybody can."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.db import Error
from django.http.request import validate_host

from identity.configuration.faults import host_of


def check_deployment(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warnings: what is right on a developer's machine and wrong in production."""
    if not (host := host_of(settings.STAFF_URL)):
        return []  # the error comes first
    problems = (
        (
            "W001",
            settings.SERVE == "both",
            "SERVE is both: the processes that answer the public also serve the staff pages.",
            "Run nodes with SERVE=login for the public, and one with SERVE=staff.",
        ),
        (
            "W002",
            host == host_of(settings.AUTH_URL),
            "STAFF_URL has the host of AUTH_URL: the staff pages are at the public address.",
            "Give them their own, for example STAFF_URL=https://staff.id.example.org.",
        ),
        (
            "W003",
            not validate_host(host, settings.ALLOWED_HOSTS),
            "ALLOWED_HOSTS does not allow the host of STAFF_URL: no staff page opens.",
            f"Add {host} to ALLOWED_HOSTS.",
        ),
        (
            "W004",
            not settings.STAFF_URL.startswith("https://"),
            "STAFF_URL is not https: passwords and sessions of staff are sent unencrypted.",
            "Put a proxy with TLS in front, and its address into STAFF_URL.",
        ),
        (
            "W006",
            settings.ENVIRONMENT == "live" and not settings.SECOND_PERSON_REQUIRED,
            "SECOND_PERSON_REQUIRED is off: one account manager can make an account that registers"
            " and one that issues credentials, and a superuser does both.",
            "Remove SECOND_PERSON_REQUIRED from the settings.",
        ),
    )
    return [
        checks.Warning(message, hint=hint, id=f"staff.{id_}")
        for id_, is_wrong, message, hint in problems
        if is_wrong
    ]


def check_accounts(**_kwargs: Any) -> list[checks.CheckMessage]:
    """A warning that names the active superusers, in `live` only."""
    if settings.ENVIRONMENT != "live":
        return []
    active = get_user_model().objects.filter(is_superuser=True, is_active=True)
    try:
        names = sorted(active.values_list("username", flat=True))
    except Error:  # before the first migration, or the database cannot be reached
        return []
    if not names:
        return []
    message = f"Active superusers ({len(names)}): {', '.join(names)}. They belong to no role."
    hint = "Create account managers (manage.py create_account), then run deactivate_account."
    return [checks.Warning(message, hint=hint, id="staff.W007")]
