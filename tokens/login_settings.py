"""The settings that every login reads, made ready once for each process."""

from collections.abc import Mapping
from functools import cache

from django.conf import settings

from taxpayers.credentials import Environment
from taxpayers.identifiers import Notation
from taxpayers.value import Hidden, Value


class LoginSettings(Value):
    """`audiences`: that of each scope. `proxy_secrets`: with any, a certificate needs one."""

    issuer: str
    mtls_url: str
    needs_https: bool
    environment: Environment
    notation: Notation
    audiences: Mapping[str, str]
    scopes: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    proxy_secrets: Hidden[tuple[str, ...]]


@cache
def login_settings() -> LoginSettings:
    """Those of this service. A setting does not change while it runs; a test clears this."""
    return LoginSettings(
        issuer=settings.AUTH_URL,
        mtls_url=settings.MTLS_URL,
        needs_https=settings.AUTH_URL.startswith("https:"),
        environment=settings.ENVIRONMENT,
        notation=Notation(settings.TIN_PATTERN, settings.ROB_PATTERN),
        audiences={name: scope["audience"] for name, scope in settings.SCOPES.items()},
        scopes=tuple(settings.SCOPES),
        trusted_proxies=tuple(settings.TRUSTED_PROXIES),
        proxy_secrets=tuple(settings.PROXY_SECRET),
    )
