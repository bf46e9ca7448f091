"""The protocol: RFC 6749 in, RFC 9068 out."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from tokens.checks import check_deployment, check_settings


class TokensConfig(AppConfig):
    name = "tokens"
    verbose_name = _("Logins")

    def ready(self) -> None:
        checks.register(check_settings, checks.Tags.security, "settings")
        checks.register(check_deployment, checks.Tags.security, deploy=True)
