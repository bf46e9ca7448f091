"""All settings, from the environment (contract 6). Read it from top to bottom."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from identity.databases import database
from identity.demo_address import demo_address
from identity.env import env, saved_secret, secret
from identity.staff import content_security, navigation

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.str("VAR_DIR", "") or BASE_DIR / "var")

# --- What this process serves -----------------------------------------------------------------

ENVIRONMENT: Literal["live", "test"]
ENVIRONMENT = env.str("ENVIRONMENT", "test")  # type: ignore[assignment]  # checked next
if ENVIRONMENT not in ("live", "test"):
    raise ImproperlyConfigured("ENVIRONMENT must be live or test.")
DATABASE_URL = secret("DATABASE_URL", "")
# Without a database of its own the service is the embedded one of `make run`: it keeps its
# secrets in var/. With one it is in production, and they must be given.
IS_EMBEDDED = not DATABASE_URL
# To try it, doors stand open that stay shut wherever real credentials are issued.
IS_TRIAL = IS_EMBEDDED and ENVIRONMENT == "test"
PORT = env.int("PORT", 8000)
# Beside a demo that runs on the same data, what other shells say is true of that one.
_DEMO_URL = demo_address(VAR_DIR) if IS_TRIAL and not env.str("PORT", "") else None
AUTH_URL = env.str("AUTH_URL", "") or _DEMO_URL or f"http://127.0.0.1:{PORT}"
# The public login and the staff's admin may run as separate processes: login, staff or both.
SERVE = env.str("SERVE", "both")
if SERVE not in ("login", "staff", "both"):
    raise ImproperlyConfigured("SERVE must be login, staff or both.")

# --- Data -------------------------------------------------------------------------------------

DATABASES = {"default": database(DATABASE_URL, VAR_DIR)}
# Optional: logins read the registry there, as long as it lags no more than that.
if REPLICA_DATABASE_URL := secret("REPLICA_DATABASE_URL", ""):
    DATABASES["replica"] = database(REPLICA_DATABASE_URL, VAR_DIR)
REPLICA_MAX_LAG_SECONDS = env.float("REPLICA_MAX_LAG_SECONDS", 1.0)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


def _required(name: str) -> str:
    value = secret(name) or (saved_secret(VAR_DIR / name.lower()) if IS_EMBEDDED else None)
    if value is None:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE.")
    return value


SECRET_KEY = _required("SECRET_KEY")
# Former ones, separated by commas: sessions and the second factors of staff outlive a change.
SECRET_KEY_FALLBACKS = [
    key.strip() for key in (secret("SECRET_KEY_FALLBACKS") or "").split(",") if key.strip()
]
# Encrypts the private signing keys: separated by commas, the newest first; all can decrypt.
KEY_ENCRYPTION_KEYS = [key.strip() for key in _required("KEY_ENCRYPTION_KEYS").split(",")]

# --- The login --------------------------------------------------------------------------------

TIN_PATTERN = env.str("TIN_PATTERN", "[A-Z0-9]{5,20}")
ROB_PATTERN = env.str("ROB_PATTERN", "[A-Z0-9-]{5,20}")
SCOPES = cast(
    "dict[str, dict[str, str]]",  # tokens.checks looks whether it is
    env.json(
        "SCOPES",
        {"InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "InvoicingAPI"}},
    ),
)
SIGNING_ALGORITHM = env.str("SIGNING_ALGORITHM", "ES256")
SECRET_LIFETIME = timedelta(days=env.int("SECRET_LIFETIME_DAYS", 365))
# Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed: addresses or networks.
TRUSTED_PROXIES: list[str] = env.list("TRUSTED_PROXIES", [])

# --- Django -----------------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", ["*"] if IS_TRIAL else [])
ROOT_URLCONF = "identity.urls"
WSGI_APPLICATION = "identity.wsgi.application"
APPEND_SLASH = True  # of the admin; the public paths never reach the middleware that does it

INSTALLED_APPS = [
    "unfold",  # before the admin, whose templates and site it replaces
    # Without `autodiscover` the staff's pages are not even loaded where only logins are served.
    "django.contrib.admin.apps.SimpleAdminConfig" if SERVE == "login" else "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",  # figures with a separator for thousands, "two days ago"
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "csp",
    "rest_framework",
    "oauth2_provider",
    "tokens",
    "taxpayers",
    "identity.demo",
    "identity.staff",  # last: it takes the libraries' own admin pages away
]

_STAFF_MIDDLEWARE = [
    "identity.middleware.apply_forwarded_headers",
    "django.middleware.security.SecurityMiddleware",
    "identity.staff.content_security.PageProtection",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "identity.staff.accounts.sessions.limit_sessions",
    "identity.staff.accounts.second_factor.require_second_factor",
]
# The public paths go round the staff's middleware: no session, cookie, CSRF or redirect there.
MIDDLEWARE = [
    "identity.middleware.set_content_length",
    "identity.middleware.bypass_staff_middleware",
    # allauth does not start without its own; a process without staff has no use for it.
    *(["allauth.account.middleware.AccountMiddleware"] if SERVE == "login" else _STAFF_MIDDLEWARE),
]
if SERVE == "login":  # the admin is installed for its commands, but no page of it is served
    SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "identity.staff.accounts.context.signin",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

TIME_ZONE = env.str("TIME_ZONE", "Asia/Kuala_Lumpur")
USE_TZ = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ms", _("Malay"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_AGE = 365 * 86_400  # chosen by the switch; without one, what the browser asks for

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_USE_FINDERS = IS_EMBEDDED  # `collectstatic` fills STATIC_ROOT in production
if IS_EMBEDDED:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)

_IS_HTTPS = AUTH_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = _IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_HTTPONLY, LANGUAGE_COOKIE_SAMESITE = True, "Lax"
SESSION_COOKIE_SAMESITE = "Lax"  # a link to a page, sent to a colleague, finds them signed in
CSRF_COOKIE_SAMESITE = "Strict"
if _IS_HTTPS:  # the browser then refuses them from any other host (RFC 6265bis, __Host-)
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if _IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _IS_HTTPS
SECURE_SSL_REDIRECT = _IS_HTTPS
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {"DIRECTIVES": content_security.DIRECTIVES}

# --- The staff's sign-in ----------------------------------------------------------------------

# The address that staff open: passkeys are bound to its name (never to a number), so a change of
# the name makes them useless. Browsers know 127.0.0.1 as localhost.
STAFF_URL = env.str("STAFF_URL", "") or AUTH_URL.replace("//127.0.0.1", "//localhost", 1)
SECOND_FACTOR_REQUIRED = not IS_TRIAL
SESSION_COOKIE_AGE = env.int("SESSION_IDLE_MINUTES", 30) * 60  # since the last request
SESSION_LONGEST = timedelta(hours=env.int("SESSION_LONGEST_HOURS", 10))
LOGIN_URL = ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
LOGIN_REDIRECT_URL = "admin:index"

ACCOUNT_ADAPTER = "identity.staff.accounts.adapters.StaffAccounts"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_SESSION_REMEMBER = False  # the cookie ends with the browser
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds; after that, once more before a factor changes
# Per user name (known or not) and per address; the same for codes of the second factor.
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "20/15m/ip,5/15m/key"}
MFA_ADAPTER = "identity.staff.accounts.adapters.SecondFactors"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # a PIN or a fingerprint: a found key opens nothing
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses play no part in the sign-in
MFA_RECOVERY_CODES_SHOW_ONCE = True

# Counts failed sign-ins over all processes and nodes. Room for many: a full cache forgets some.
CACHE_TABLE = "staff_cache"
CACHES: dict[str, Any] = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": CACHE_TABLE,
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

# --- Libraries --------------------------------------------------------------------------------

OAUTH2_PROVIDER_APPLICATION_MODEL = "taxpayers.SystemUser"
OAUTH2_PROVIDER: dict[str, Any] = {
    "SCOPES": dict.fromkeys(SCOPES, ""),
    # We use neither its grants nor its tables of tokens; these say so to its checks (RFC 9700).
    **{
        f"COMPLIANT_BCP_RFC9700_{practice}": True
        for practice in (
            "IMPLICIT_GRANT",
            "PASSWORD_GRANT",
            "PKCE_METHOD",
            "ACCESS_TOKEN_TRANSPORT",
            "AUTHZ_RESPONSE_ISS",
            "TOKEN_STORAGE",
        )
    },
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
}
UNFOLD = navigation.UNFOLD
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tokens.resource_server.authentication.AccessTokenAuthentication"
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "tokens.resource_server.errors.answer_exception",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tokens.resource_server.errors.AlwaysJson",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is a 405 like every other method
    "UNAUTHENTICATED_USER": None,
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "identity.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", "INFO")},
    "loggers": {
        # They log requests at DEBUG: never let a secret come near a log.
        "oauthlib": {"level": "WARNING"},
        "oauth2_provider": {"level": "WARNING"},
        # A refusal is no warning, and has its own line.
        "django.request": {"level": "ERROR"},
    },
}
