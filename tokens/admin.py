"""Logins and signing keys in the staff's admin."""

from django.apps import apps
from django.contrib import admin
from django.db.models import Model

from taxpayers.models import SystemUser

# The toolkit's own pages show tables that this service never fills.
models: list[type[Model]] = [*apps.get_app_config("oauth2_provider").get_models(), SystemUser]
for model in models:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
