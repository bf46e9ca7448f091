"""The registry: who may act for whom, and who may log in."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TaxpayersConfig(AppConfig):
    name = "taxpayers"
    verbose_name = _("Registry")
