"""The protocol: RFC 6749 in, RFC 9068 out."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class TokensConfig(AppConfig):
    name = "tokens"
    verbose_name = _("Logins")

    def ready(self) -> None:
        checks.register(_check_settings, checks.Tags.security, "settings")
        checks.register(_check_deployment, checks.Tags.security, deploy=True)


# They import what a login needs. A command that checks nothing starts without it.
def _check_settings(**options: Any) -> list[checks.CheckMessage]:
    from tokens.checks import check_settings

    return check_settings(**options)


def _check_deployment(**options: Any) -> list[checks.CheckMessage]:
    from tokens.checks import check_deployment

    return check_deployment(**options)
