"""`migrate`: that of the registry, which then makes the groups of the roles."""

from typing import Any

from identity.staff.accounts.permissions import make_groups
from taxpayers.management.commands import migrate


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        if not (options["plan"] or options["check_unapplied"]):
            make_groups(options["database"])
