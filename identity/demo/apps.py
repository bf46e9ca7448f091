"""The embedded start: sample data and a server (contract 6, `demo`)."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "identity.demo"
