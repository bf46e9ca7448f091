"""The registry: who may act for which taxpayer, and who may log in."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import connections
from django.utils.translation import gettext_lazy as _

from taxpayers.facts import triggers


class TaxpayersConfig(AppConfig):
    name = "taxpayers"
    verbose_name = _("Registry")

    def ready(self) -> None:
        # They import models, which are not there when this module is read.
        from taxpayers.management import client_commands, registry_commands  # noqa: PLC0415
        from taxpayers.management.table import add_commands, add_commands_of  # noqa: PLC0415

        checks.register(check_triggers, checks.Tags.database)
        add_commands(self.name, {**registry_commands.COMMANDS, **client_commands.COMMANDS})
        late = ("revoke_secrets", "rotate_secrets")
        add_commands_of("taxpayers.management.bulk_commands", late, self.name)


def check_triggers(
    *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[checks.CheckMessage]:
    """Without them a change by SQL would not reach logins, nor the status lists."""
    faults = (triggers.fault(connections[alias]) for alias in databases or ())
    hint = "Run manage.py migrate."
    return [checks.Warning(fault, hint, id="taxpayers.W001") for fault in faults if fault]
