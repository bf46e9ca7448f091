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
