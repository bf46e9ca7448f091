"""The protocol: RFC 6749 in, RFC 9068 out."""

from collections.abc import Callable
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _


class TokensConfig(AppConfig):
    name = "tokens"
    verbose_name = _("Logins")

    def ready(self) -> None:
        checks.register(_check("check_settings"), checks.Tags.security, "settings")
        checks.register(_check("check_deployment"), checks.Tags.security, deploy=True)
        # They import models, which are not there when this module is read.
        from taxpayers.management.table import add_commands, add_commands_of  # noqa: PLC0415
        from tokens.management.protected_api_commands import COMMANDS  # noqa: PLC0415

        add_commands(self.name, COMMANDS)
        room = "tokens.management"
        add_commands_of(f"{room}.dump_commands", ("dump", "restore"), self.name)
        add_commands_of(f"{room}.login_commands", ("count_logins", "prune_logins"), self.name)


def _check(name: str) -> Callable[..., list[checks.CheckMessage]]:
    """It imports what a login needs: a command that checks nothing starts without that."""

    def check(**options: Any) -> Any:
        return import_string(f"tokens.checks.{name}")(**options)

    return check
