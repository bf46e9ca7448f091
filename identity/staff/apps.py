"""The staff pages: registry, logins, overview and accounts. Not installed where SERVE=login."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class StaffConfig(AppConfig):
    name = "identity.staff"
    verbose_name = _("Staff pages")
