"""All settings, from the environment (contract 6). Read it from top to bottom.

`configuration.setting_list` says what those of the environment mean. Those of the staff pages are
in `staff_settings`, and are used only where these are served.
"""

import sys
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from identity.configuration import faults
from identity.configuration.setting_list import SETTINGS
from identity.databases import database
from identity.deployment import *
from identity.env import read, saved_secret, unknown_settings, wrong_settings

# Filled while these settings are read; tokens.checks reports them.
WRONG_SETTINGS = wrong_settings
UNKNOWN_SETTINGS = unknown_settings
# Of the environment, with their meaning: `manage.py settings` shows them.
SETTING_LIST = SETTINGS

# --- Data -------------------------------------------------------------------------------------

DATABASES = {"default": database(DATABASE_URL, VAR_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


def _required(name: str) -> Any:
    value = read(name)
    if not value and not IS_EMBEDDED:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE.")
    return value or SETTINGS[name].read(saved_secret(VAR_DIR / name.lower()))


SECRET_KEY: str = _required("SECRET_KEY")
SECRET_KEY_FALLBACKS: list[str] = read("SECRET_KEY_FALLBACKS")
KEY_ENCRYPTION_KEYS: list[str] = _required("KEY_ENCRYPTION_KEYS")

# --- The login --------------------------------------------------------------------------------

TIN_PATTERN: str = read("TIN_PATTERN")
ROB_PATTERN: str = read("ROB_PATTERN")
SCOPES: dict[str, dict[str, str]] = read("SCOPES")  # `check` finds out whether it is one
EVIDENCE_REQUIRED: bool = read("EVIDENCE_REQUIRED")
PERMISSION_REQUEST_LIFETIME = timedelta(days=read("PERMISSION_REQUEST_DAYS"))
OPEN_REQUESTS_MOST: int = read("OPEN_REQUESTS_MOST")
CONFIRM_URL = (read("CONFIRM_URL") or f"{AUTH_URL}/confirm").rstrip("/")
PORTAL_URL: str = read("PORTAL_URL")
SYSTEM_WARNINGS: list[dict[str, str]] = read("SYSTEM_WARNINGS")
SIGNING_ALGORITHM: str = read("SIGNING_ALGORITHM")
SECRET_LIFETIME = timedelta(days=read("SECRET_LIFETIME_DAYS"))
LOGIN_RETENTION: timedelta | None = read("LOGIN_RETENTION")
STATUS_LIST_HORIZON: timedelta = read("STATUS_LIST_HORIZON")
OFFLINE_BLOCK_KEYS: list[str] = read("OFFLINE_BLOCK_KEYS")
OFFLINE_BLOCK_DIR = VAR_DIR / "offline-blocks"
TRUSTED_PROXIES: list[str] = read("TRUSTED_PROXIES")
MTLS_URL: str = read("MTLS_URL")  # may be AUTH_URL itself
PROXY_SECRET: list[str] = read("PROXY_SECRET")
LOCAL_FACTS_DIR = VAR_DIR / "local-facts"
LOCAL_FACTS_MEGABYTES: int = read("LOCAL_FACTS_MEGABYTES")

# --- Traces -----------------------------------------------------------------------------------

# Standard names: OpenTelemetry reads them as well, and others.
OTEL_EXPORTER_OTLP_ENDPOINT: str = read("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_TRACES_SAMPLER_ARG: float = read("OTEL_TRACES_SAMPLER_ARG")

ACCEPTED_RISKS: list[str] = read("ACCEPTED_RISKS")
_SILENCED = sorted(faults.DANGERS.intersection(ACCEPTED_RISKS))

# --- Django -----------------------------------------------------------------------------------

DEBUG: bool = read("DEBUG")
ALLOWED_HOSTS: list[str] = read("ALLOWED_HOSTS", ["*"] if IS_TRIAL else [])
WSGI_APPLICATION = "identity.wsgi.application"
ROOT_URLCONF = "identity.urls"
INSTALLED_APPS = [
    "django.contrib.auth",  # oauth2_provider has foreign keys to its users
    "django.contrib.contenttypes",
    "rest_framework",
    "oauth2_provider",
    "tokens",
    "taxpayers",
    "identity.demo",
]
MIDDLEWARE = [
    "identity.middleware.set_content_length",
    "identity.middleware.bypass_staff_middleware",
]

TIME_ZONE: str = read("TIME_ZONE")
USE_TZ = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ms", _("Malay"))]
LOCALE_PATHS = [BASE_DIR / "locale"]

# --- Libraries --------------------------------------------------------------------------------

OAUTH2_PROVIDER_APPLICATION_MODEL = "taxpayers.SystemUser"
# Its tables in one step: its own steps take `migrate` three times as long as all others together.
MIGRATION_MODULES = {"oauth2_provider": "tokens.migrations.toolkit"}
OAUTH2_PROVIDER: dict[str, Any] = {
    "SCOPES": dict.fromkeys(SCOPES, ""),
    # We use neither its grants nor its tables of tokens; these say so to its checks (RFC 9700).
    **{
        f"COMPLIANT_BCP_RFC9700_{practice}": True
        for practice in (
            *("IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT"),
            *("AUTHZ_RESPONSE_ISS", "TOKEN_STORAGE"),
        )
    },
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
}
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tokens.resource_server.authentication.ActiveTokenAuthentication"
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "tokens.resource_server.errors.answer_exception",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tokens.resource_server.negotiation.AlwaysJson",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is a 405 like every other method
    "UNAUTHENTICATED_USER": None,
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {"()": "identity.logs.JsonFormatter"},
        "text": {"()": "identity.logs.TextFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": read("LOG_FORMAT", "text" if sys.stderr.isatty() else "json"),
        }
    },
    "root": {"handlers": ["stderr"], "level": read("LOG_LEVEL")},
    "loggers": {
        # They log requests at DEBUG: never let a secret come near a log.
        "oauthlib": {"level": "WARNING"},
        "oauth2_provider": {"level": "WARNING"},
        # A refusal is no warning, and has its own line.
        "django.request": {"level": "ERROR"},
    },
}

# --- The staff pages --------------------------------------------------------------------------

if SERVE == "login":  # no page, cookie or form is served, so these need no protection
    SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003", *_SILENCED]
else:
    from identity.staff_settings import *

    # First our commands for accounts, which replace those of django.contrib.auth. Then the
    # libraries: unfold replaces templates of the admin. Our pages last: they unregister the admin
    # pages of the libraries.
    INSTALLED_APPS = [
        "identity.staff.accounts",
        *STAFF_LIBRARIES,
        *INSTALLED_APPS,
        "identity.staff",
        "identity.webhooks",
        "identity.api",
    ]
    MIDDLEWARE = [*MIDDLEWARE, *STAFF_MIDDLEWARE]
    ROOT_URLCONF = STAFF_URLCONF
    SILENCED_SYSTEM_CHECKS = [*STAFF_SILENCED_CHECKS, *_SILENCED]
