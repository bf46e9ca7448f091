"""The registry: who may act for which taxpayer, and who may log in."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from taxpayers.checks import check_triggers


class TaxpayersConfig(AppConfig):
    name = "taxpayers"
    verbose_name = _("Registry")

    def ready(self) -> None:
        checks.register(check_triggers, checks.Tags.database)
        _add_commands()


def _add_commands() -> None:
    # They import models, which are not there when this module is read.
    from taxpayers.management import client_commands, registry_commands  # noqa: PLC0415
    from taxpayers.management.table import add_commands  # noqa: PLC0415

    add_commands("taxpayers", {**registry_commands.COMMANDS, **client_commands.COMMANDS})
