"""Logins and signing keys in the staff's admin: to be seen, never changed."""

from django.contrib import admin

from tokens.admin.logins import LoginEventAdmin
from tokens.admin.signing_keys import SigningKeyAdmin
from tokens.models import LoginEvent, SigningKey

admin.site.register(LoginEvent, LoginEventAdmin)
admin.site.register(SigningKey, SigningKeyAdmin)
