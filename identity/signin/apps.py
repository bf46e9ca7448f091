"""How staff sign in: password and a second factor, on top of django-allauth."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SignInConfig(AppConfig):
    name = "identity.signin"
    verbose_name = _("Sign-in")
