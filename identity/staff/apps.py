"""The staff pages: registry, logins, overview and accounts. Not installed where SERVE=login."""

import sys
from pathlib import Path

from django.apps import AppConfig
from django.contrib.admin import apps
from django.core import checks
from django.utils.translation import gettext_lazy as _

from identity.staff.checks import check_accounts, check_deployment

ACCOUNT_COMMANDS = (
    *("create_account", "rename_account", "change_role", "activate_account", "deactivate_account"),
    *("set_first_password", "changepassword", "reset_second_factor", "end_sessions"),
    *("confirm_account", "decline_account"),
)


class AdminConfig(apps.AdminConfig):
    """Django's admin. A command needs no page: to load them all is half of its start."""

    default = False

    def ready(self) -> None:
        if Path(sys.argv[0]).name == "manage.py" and "check" not in sys.argv:
            apps.SimpleAdminConfig.ready(self)
        else:
            super().ready()


class StaffConfig(AppConfig):
    name = "identity.staff"
    verbose_name = _("Staff pages")

    def ready(self) -> None:
        checks.register(check_deployment, checks.Tags.security, deploy=True)
        checks.register(check_accounts, checks.Tags.security, deploy=True)
        # It imports models, which are not there when this module is read.
        from taxpayers.management.table import add_commands_of  # noqa: PLC0415

        add_commands_of(
            "identity.staff.accounts.management.account_commands", ACCOUNT_COMMANDS, self.name
        )
