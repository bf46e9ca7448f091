"""A database that was made before the migrations were squashed: it cannot be migrated.

Remove this once nobody has such a `var/` any more.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

_FORMER_MIGRATIONS = {
    ("taxpayers", "0002_permission_codes"),
    ("taxpayers", "0003_what_staff_may_do"),
    ("taxpayers", "0004_what_ends_soon_and_uploads"),
    ("taxpayers", "0005_search_by_prefix"),
    ("taxpayers", "0006_what_ended"),
    ("taxpayers", "0007_usage"),
}


def refuse_earlier_database() -> None:
    """Raises CommandError, with what to do, if an earlier version made the default database."""
    if fault := _fault("default"):
        raise CommandError(fault)


def check_database(
    *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[checks.CheckMessage]:
    """The same as a system check: `manage.py migrate` runs it."""
    faults = (_fault(alias) for alias in databases or ())
    return [checks.Error(fault, id="demo.E001") for fault in faults if fault]


def _fault(alias: str) -> str | None:
    connection = connections[alias]
    if _FORMER_MIGRATIONS.isdisjoint(MigrationRecorder(connection).applied_migrations()):
        return None
    way = (
        f"run make clean, or remove {settings.VAR_DIR}"
        if settings.IS_EMBEDDED
        else "use an empty database"
    )
    return (
        f"The database {connection.settings_dict['NAME']} was made by an earlier version and cannot"
        f" be migrated. Nothing was released, so start over: {way}, then run this again."
    )
