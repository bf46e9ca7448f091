"""`migrate`: Django's command, which then puts the triggers of this version in place."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from taxpayers.facts import triggers


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Safe to repeat, also after an interruption."""
        connection = connections[options["database"]]
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        executor = MigrationExecutor(connection)
        targets = executor.loader.graph.leaf_nodes()
        if connection.vendor == "sqlite" and executor.migration_plan(targets):
            triggers.remove(connection)  # it cannot make a table anew beside them
        super().handle(*args, **options)
        triggers.install(connection)
