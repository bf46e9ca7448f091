"""Logins and signing keys in the staff's admin."""

from django.apps import apps
from django.contrib import admin

from taxpayers.models import SystemUser

# The toolkit's own pages show tables that this service never fills.
for model in [*apps.get_app_config("oauth2_provider").get_models(), SystemUser]:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
