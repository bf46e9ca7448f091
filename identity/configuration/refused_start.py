"""Why the server does not start: what no process can work with and, in `live`, what is not safe."""

import os
from collections.abc import Iterator

from django.conf import settings
from django.core.checks import run_checks
from django.core.checks.security.base import check_debug, check_secret_key

from identity.configuration.faults import DANGERS
from tokens.checks import check_deployment


def faults() -> Iterator[str]:
    """One line for each reason; with none of them the server may start."""
    yield from (
        f"{one.msg} {one.hint}" for one in run_checks(tags=["settings"]) if one.is_serious()
    )
    if unknown := set(settings.ACCEPTED_RISKS) - DANGERS:
        known = ", ".join(sorted(DANGERS))
        yield f"ACCEPTED_RISKS has {', '.join(sorted(unknown))}: choose from {known}."
    if settings.IS_HTTPS and "ENVIRONMENT" not in os.environ:
        yield "AUTH_URL is https without ENVIRONMENT: say ENVIRONMENT=live, or ENVIRONMENT=test."
    if settings.ENVIRONMENT == "live":
        # Not all checks: a node starts while its database is away.
        warnings = (*check_deployment(), *check_secret_key(None), *check_debug(None))
        for one in warnings:
            if one.id in DANGERS - set(settings.ACCEPTED_RISKS):
                yield f"{one.id}: {one.msg} {one.hint or ''}".strip()
