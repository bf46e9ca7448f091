"""The protocol: RFC 6749 in, RFC 9068 out."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TokensConfig(AppConfig):
    name = "tokens"
    verbose_name = _("Logins")

    def ready(self) -> None:
        from tokens import checks  # noqa: F401 - registers the system checks
