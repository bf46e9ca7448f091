"""Nothing of allauth's in the admin: staff keep their own second factor, on pages of their own."""

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.db.models import Model

models: list[type[Model]] = [EmailAddress, EmailConfirmation, Authenticator]
for model in models:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
