"""The management API: REST for the authority's portal. Not installed where SERVE=login."""

from django.apps import AppConfig
from django.core import checks

from identity.api.checks import check_duties, check_scopes


class ManagementApiConfig(AppConfig):
    name = "identity.api"

    def ready(self) -> None:
        checks.register(check_scopes, checks.Tags.security)
        checks.register(check_duties, checks.Tags.database)
        # It imports models, which are not there when this module is read.
        from taxpayers.management.table import add_commands_of  # noqa: PLC0415

        add_commands_of("identity.api.management.record_commands", ("list", "show"), self.name)
