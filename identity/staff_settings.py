"""The settings of the staff pages: `settings` takes over every name, unless SERVE=login."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF
from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _

from identity.deployment import (
    AUTH_URL,
    BASE_DIR,
    ENVIRONMENT,
    IS_EMBEDDED,
    IS_HTTPS,
    IS_TRIAL,
    VAR_DIR,
)
from identity.env import read

# --- Django -----------------------------------------------------------------------------------

STAFF_LIBRARIES = [
    "unfold",  # before the admin, whose templates and site it replaces
    "identity.staff.apps.AdminConfig",  # django.contrib.admin
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",  # figures with a separator for thousands, "two days ago"
    "django.forms",  # its templates, for FORM_RENDERER
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "csp",
]
STAFF_MIDDLEWARE = [
    "identity.middleware.apply_forwarded_headers",
    "django.middleware.security.SecurityMiddleware",
    "identity.staff.page_protection.PageProtection",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "identity.staff.display.say_moments_as_pages",
    "identity.staff.page_protection.take_out_secrets",  # before anything stores what was sent
    "identity.staff.sessions.limit_sessions",
    "identity.staff.accounts.required_first.redirect_to_own_password",
    "identity.staff.accounts.required_first.require_second_factor",
]
STAFF_URLCONF = "identity.staff.urls"
APPEND_SLASH = True  # of the admin; the public paths never reach the middleware that does it

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
                "identity.staff.accounts.sign_in.sign_in",
            ]
        },
    }
]

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"  # templates/ may replace those of widgets

STATIC_URL = "static/"
# Elsewhere where they come with the program, as in the image of deploy/container/.
STATIC_ROOT = Path(read("STATIC_DIR") or VAR_DIR / "static")
WHITENOISE_USE_FINDERS = IS_EMBEDDED  # `collectstatic` fills STATIC_ROOT in production
# As in all of var/: only the owner can open it. Run `collectstatic` as the user of the service.
FILE_UPLOAD_PERMISSIONS, FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o600, 0o700
if IS_EMBEDDED:
    STATIC_ROOT.mkdir(mode=0o700, parents=True, exist_ok=True)

# Counts failed sign-ins over all processes and nodes. Room for many: a full cache forgets some.
CACHE_TABLE = "staff_cache"
CACHES: dict[str, Any] = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": CACHE_TABLE,
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

# --- Cookies and headers ----------------------------------------------------------------------

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
# Lax: a link to a page, sent to a colleague, opens it without another sign-in.
SESSION_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_FAILURE_VIEW = "identity.staff.sessions.expired_form"
BROWSER_COOKIE_NAME = "browser"  # who has signed in with this browser before; it opens nothing
BROWSER_COOKIE_AGE = 180 * 86_400
if IS_HTTPS:  # the browser then refuses them from any other host (RFC 6265bis, __Host-)
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    BROWSER_COOKIE_NAME = "__Host-browser"
# The language that the switch has chosen; without one, the language of the browser is used.
LANGUAGE_COOKIE_AGE = 365 * 86_400
SECURE_CONTENT_TYPE_NOSNIFF = True
# Only for the host of the staff pages. Other hosts of the domain, and a list that is built into
# browsers, are for the owner of the domain to decide: both are hard to undo.
_HSTS_SECONDS: int = read("HSTS_SECONDS")
SECURE_HSTS_SECONDS = _HSTS_SECONDS if IS_HTTPS else 0
STAFF_SILENCED_CHECKS = ["security.W005", "security.W021"]  # they ask for both
SECURE_SSL_REDIRECT = IS_HTTPS
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
# No inline script or style without the nonce of its response, and no text that becomes code.
CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],  # the QR code of the second factor
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- Sign-in ----------------------------------------------------------------------------------

# The address that staff open. Passkeys are bound to its host name (never to a number), so a change
# of that name makes them useless. Browsers accept passkeys of localhost, not of 127.0.0.1.
STAFF_URL: str = read("STAFF_URL") or AUTH_URL.replace("//127.0.0.1", "//localhost", 1)
# A proxy may pass the host on without its port: then a form's Origin is not that of the request.
_staff = urlsplit(STAFF_URL)
CSRF_TRUSTED_ORIGINS = [f"{_staff.scheme}://{_staff.netloc}"] if _staff.netloc else []
SECOND_FACTOR_REQUIRED = not IS_TRIAL
SECOND_PERSON_REQUIRED: bool = read("SECOND_PERSON_REQUIRED", ENVIRONMENT == "live")
AUTHENTICATION_BACKENDS = ["identity.staff.accounts.permissions.StaffBackend"]
SESSION_COOKIE_AGE: int = read("SESSION_IDLE_MINUTES") * 60  # seconds since the last request
SESSION_LONGEST = timedelta(hours=read("SESSION_LONGEST_HOURS"))
LOGIN_URL = ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
LOGIN_REDIRECT_URL = "admin:index"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

ACCOUNT_ADAPTER = "identity.staff.accounts.adapters.StaffAccounts"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_FORMS = {
    "login": "identity.staff.accounts.sign_in.SignInForm",
    "change_password": "identity.staff.accounts.own_sign_in.NewPasswordForm",
}
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_SESSION_REMEMBER = False  # the cookie ends with the browser
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300  # seconds; then again, before a second factor changes
# Failed sign-ins are counted in identity/staff/accounts/guesses.py: these would let anyone lock
# out an officer by name, or everybody at their address.
ACCOUNT_RATE_LIMITS = {"login": "", "login_failed": ""}
MFA_RATE_LIMITS = {"webauthn_login": ""}  # a signature cannot be guessed
MFA_FORMS = {
    "authenticate": "identity.staff.accounts.sign_in.SignInCode",
    "reauthenticate": "identity.staff.accounts.sign_in.ConfirmationCode",
    "login_webauthn": "identity.staff.accounts.sign_in.PasskeySignIn",
    "authenticate_webauthn": "identity.staff.accounts.sign_in.KeySignIn",
    "reauthenticate_webauthn": "identity.staff.accounts.sign_in.KeyConfirmation",
}
MFA_ADAPTER = "identity.staff.accounts.adapters.SecondFactors"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"  # PIN or fingerprint: a lost key opens nothing
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses play no part in the sign-in
MFA_RECOVERY_CODES_SHOW_ONCE = True

# --- Look -------------------------------------------------------------------------------------

# A calm blue; white on its 600 and 700 has a contrast of more than 4.5:1 (WCAG 1.4.3).
_PRIMARY = {
    "50": "oklch(97% .014 254.604)",
    "100": "oklch(93.2% .032 255.585)",
    "200": "oklch(88.2% .059 254.128)",
    "300": "oklch(80.9% .105 251.813)",
    "400": "oklch(70.7% .165 254.624)",
    "500": "oklch(62.3% .214 259.815)",
    "600": "oklch(54.6% .245 262.881)",
    "700": "oklch(48.8% .243 264.376)",
    "800": "oklch(42.4% .199 265.638)",
    "900": "oklch(37.9% .146 265.522)",
    "950": "oklch(28.2% .091 267.935)",
}
# django-unfold resolves the dotted names when it draws a page.
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": _("Token service"),
    "SITE_HEADER": _("Token service"),
    "SITE_SUBHEADER": _("Who may log in to e-invoicing"),
    "SITE_SYMBOL": "shield_person",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("staff/icon.svg")}
    ],
    "DASHBOARD_CALLBACK": "identity.staff.overview.page.today",
    "SHOW_HISTORY": False,
    "SHOW_LANGUAGES": True,
    "STYLES": [lambda _: static("staff/frame.css"), lambda _: static("staff/staff.css")],
    "ENVIRONMENT": "identity.staff.navigation.environment",
    "COLORS": {"primary": _PRIMARY},
    "SIDEBAR": {"show_search": False, "navigation": "identity.staff.navigation.sidebar"},
}

# --- Webhooks ---------------------------------------------------------------------------------

WEBHOOK_ALLOWED_NETWORKS: list[str] = read("WEBHOOK_ALLOWED_NETWORKS")
WEBHOOK_RETENTION_DAYS: int = read("WEBHOOK_RETENTION_DAYS")
