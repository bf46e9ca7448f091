"""The embedded start: sample data and a server (contract 6, `demo`)."""

from django.apps import AppConfig
from django.core import checks

from identity.demo.earlier_version import check_database


class DemoConfig(AppConfig):
    name = "identity.demo"

    def ready(self) -> None:
        checks.register(check_database, checks.Tags.database)
