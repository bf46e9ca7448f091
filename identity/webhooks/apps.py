"""Webhooks: tells programs of the authority what has changed. Not installed where SERVE=login."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "identity.webhooks"

    def ready(self) -> None:
        # They import models, which are not there when this module is read.
        from identity.webhooks.management.webhook_commands import COMMANDS  # noqa: PLC0415
        from taxpayers.management.table import add_commands, add_commands_of  # noqa: PLC0415

        add_commands(self.name, COMMANDS)
        late = ("deliver_webhooks", "list_webhooks", "nightly_webhooks")
        add_commands_of("identity.webhooks.management.delivery_commands", late, self.name)
