"""Opens a session of a new superuser in the service's database, and prints its cookie."""

import os
import secrets
import sys

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "identity.settings"
django.setup()

from allauth.account.internal.flows.login import record_authentication  # noqa: E402
from allauth.mfa.totp.internal.auth import TOTP  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.http import HttpRequest  # noqa: E402
from django.test import Client  # noqa: E402

user = get_user_model().objects.create_superuser(f"bench-{secrets.token_hex(4)}")
authenticator = TOTP.activate(user, secrets.token_hex(16)).instance
client = Client()
client.force_login(user)
# As after password and second factor.
request = HttpRequest()
request.session, request.user = client.session, user
record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
request.session.save()
sys.stdout.write(f"{settings.SESSION_COOKIE_NAME}={request.session.session_key}")
