"""The staff pages: registry, logins, overview and accounts. Not installed where SERVE=login."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from identity.staff.checks import check_accounts, check_deployment


class StaffConfig(AppConfig):
    name = "identity.staff"
    verbose_name = _("Staff pages")

    def ready(self) -> None:
        checks.register(check_deployment, checks.Tags.security, deploy=True)
        checks.register(check_accounts, checks.Tags.security, deploy=True)
        # They import models, which are not there when this module is read.
        from identity.staff.accounts.management.account_commands import COMMANDS  # noqa: PLC0415
        from taxpayers.management.table import add_commands  # noqa: PLC0415

        add_commands(self.name, COMMANDS)
