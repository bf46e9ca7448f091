"""Settings of django-oauth-toolkit as its tutorial has them; what it does not need is left out."""

import os
from pathlib import Path

from identity.databases import database

SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {"default": database(os.environ["DATABASE_URL"], Path())}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "bench.peers.toolkit_urls"
USE_TZ = True
OAUTH2_PROVIDER = {"SCOPES": {"InvoicingAPI": "The e-invoicing APIs"}}
# Django's own list, or a single fast hasher for secrets that nobody could guess anyway.
if hasher := os.environ.get("TOOLKIT_HASHER"):
    PASSWORD_HASHERS = [hasher]
