"""System checks of the management API: a token for another API must not open it."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks

from taxpayers.duties import MANAGEMENT_SCOPES


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
