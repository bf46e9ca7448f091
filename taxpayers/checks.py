"""System checks of the registry: `manage.py check --database default` and `migrate` run them."""

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import connections

from taxpayers.facts import triggers


def check_triggers(
    *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[checks.CheckMessage]:
    """Without them a change by SQL would not reach logins, nor the status lists."""
    faults = (triggers.fault(connections[alias]) for alias in databases or ())
    hint = "Run manage.py migrate."
    return [checks.Warning(fault, hint, id="taxpayers.W001") for fault in faults if fault]
