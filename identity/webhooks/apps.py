"""Webhooks: tells programs of the authority what has changed. Not installed where SERVE=login."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "identity.webhooks"
