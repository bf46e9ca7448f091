"""`migrate`: Django's command, which then puts the triggers of this version in place."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from taxpayers.facts import triggers


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> str | None:
        if options["migration_name"] and settings.ENVIRONMENT == "live":
            raise CommandError("migrate goes forward only in live: name no migration.")
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        """Safe to repeat, also after an interruption."""
        connection = connections[options["database"]]
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SHOW server_encoding")
                if (encoding := cursor.fetchone()[0]) != "UTF8":
                    raise CommandError(f"The database has the encoding {encoding}, not UTF8.")
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        executor = MigrationExecutor(connection)
        targets = executor.loader.graph.leaf_nodes()
        if connection.vendor == "sqlite" and executor.migration_plan(targets):
            triggers.remove(connection)  # it cannot make a table anew beside them
        super().handle(*args, **options)
        triggers.install(connection)
