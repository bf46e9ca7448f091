"""System checks of the management API: a token for another API must not open it; one hand."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.db import connections
from django.db.models import Q
from django.utils import timezone

from taxpayers.duties import MANAGEMENT_SCOPES, WHOLE, duties_of, must_be_separate

_MOST_NAMED = 10


def check_scopes(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Errors: an audience that the management API shares with another API."""
    return [
        checks.Error(
            f"The scopes {scope} and {other} have the same audience, {audience}: an API that gets"
            " tokens for one of them could use the other one.",
            hint=f'Give {scope} a separate audience in SCOPES, for example "RegistryAPI".',
            id="api.E001",
        )
        for scope, other, audience in _shared_audiences()
    ]


def check_duties(
    *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[checks.CheckMessage]:
    """Warnings: clients that hold duties which two should hold. `migrate` runs it."""
    return [
        checks.Warning(
            f"These system users may both register or grant and issue credentials: {listed}."
            " One stolen token of them can let in an invented client.",
            hint="Register one for each duty, with manage.py issue_credentials --scope"
            " RegistryAPI:taxpayers (…:permissions, …:credentials), and block the present one.",
            id="api.W001",
        )
        for alias in databases or ()
        if (listed := ", ".join(_with_both_duties(alias)))
    ]


def _with_both_duties(alias: str) -> list[str]:
    """The client ids of those that can log in, the first few."""
    system_user = apps.get_model("taxpayers", "SystemUser")  # this module is read before models
    if system_user._meta.db_table not in connections[alias].introspection.table_names():
        return []  # before the first migration
    lives = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    rows = system_user._default_manager.using(alias).filter(
        lives, scopes__contains=WHOLE, blocked_at__isnull=True, taxpayer__is_active=True
    )
    found = rows.order_by("pk").values_list("client_id", "scopes")
    both = [name for name, scopes in found if must_be_separate(duties_of(scopes.split()))]
    more = len(both) - _MOST_NAMED
    return both[:_MOST_NAMED] + ([f"and {more} more"] if more > 0 else [])


def _shared_audiences() -> Iterator[tuple[str, str, str]]:
    scopes: Any = settings.SCOPES
    if not isinstance(scopes, dict):
        return  # tokens.checks names it
    audiences = {
        name: scope.get("audience", "") for name, scope in scopes.items() if isinstance(scope, dict)
    }
    for scope in sorted(MANAGEMENT_SCOPES & audiences.keys()):
        for other in sorted(audiences.keys() - MANAGEMENT_SCOPES):
            if audiences[scope] == audiences[other]:
                yield scope, other, audiences[scope]
