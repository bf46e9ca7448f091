"""System checks: `manage.py check` finds wrong settings before a client does (contract 6)."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from tokens.keys.ring import ALGORITHMS
from tokens.system_warnings import faults_of

Problem = tuple[str, str, str]  # id, message, hint

_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::\d+)?(?:/[^\s]*)?")
_PROXY_SECRET = re.compile(r"[A-Za-z0-9_-]{32,}")  # as a header of nginx takes it
_MIN_KEY_LENGTH = 32
_SCOPE_NAME = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")  # RFC 6749 section 3.3
_HOST_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
_MAX_SCOPES_LENGTH = 255  # of the columns of a system user and of a login event


def check_settings(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Errors: what no process can work with."""
    return [
        checks.Error(message, hint=hint, id=f"tokens.{id_}")
        for check in (
            *(_auth_url, _patterns, _scopes, _algorithm, _encryption_keys, _proxies),
            *(_numbers, _bind, _mtls_url),
            _system_warnings,
        )
        for id_, message, hint in check()
    ]


def check_deployment(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warnings: what is right on a developer's machine and wrong in production."""
    return [
        checks.Warning(message, hint=hint, id=f"tokens.{id_}")
        for check in (_transport, _database, _hosts, _proxies_of_everybody, _unknown_names)
        for id_, message, hint in check()
    ]


def _transport() -> Iterator[Problem]:
    if not settings.AUTH_URL.startswith("https://"):
        yield (
            "W001",
            "AUTH_URL is not https: client secrets and tokens are sent unencrypted.",
            "Put a proxy with TLS in front, and its address into AUTH_URL (specification 5).",
        )
    elif not settings.TRUSTED_PROXIES:
        yield (
            "W002",
            "AUTH_URL is https, but no proxy is trusted: every login is refused as insecure.",
            "Put the proxy that terminates TLS into TRUSTED_PROXIES, for example 10.0.0.5.",
        )


def _database() -> Iterator[Problem]:
    if settings.ENVIRONMENT == "live" and settings.IS_EMBEDDED:
        yield (
            "W003",
            "ENVIRONMENT is live without DATABASE_URL: data and secrets are stored in var/.",
            "Set DATABASE_URL to a PostgreSQL database, and SECRET_KEY and KEY_ENCRYPTION_KEYS.",
        )


def _hosts() -> Iterator[Problem]:
    if "*" in settings.ALLOWED_HOSTS:
        yield (
            "W004",
            "ALLOWED_HOSTS allows every host name: a forged one would appear in links.",
            "List the hosts of AUTH_URL and STAFF_URL, separated by a comma.",
        )
    elif settings.SERVE != "staff" and not validate_host(_auth_host(), settings.ALLOWED_HOSTS):
        yield (
            "W005",
            "ALLOWED_HOSTS does not allow the host of AUTH_URL, which clients call.",
            f"Add {_auth_host()} to ALLOWED_HOSTS.",
        )


def _auth_host() -> str:
    try:
        return urlsplit(settings.AUTH_URL).hostname or ""
    except ValueError:  # check_settings names it
        return ""


def _proxies_of_everybody() -> Iterator[Problem]:
    for proxy in settings.TRUSTED_PROXIES:
        try:
            is_everybody = ip_network(proxy, strict=False).prefixlen == 0
        except ValueError:  # check_settings names it
            continue
        if is_everybody:
            yield (
                "W006",
                f"TRUSTED_PROXIES has {proxy}: each client may name its own address and scheme.",
                "List the addresses of the proxies alone, for example 10.0.0.5.",
            )


def _unknown_names() -> Iterator[Problem]:
    for line in settings.UNKNOWN_SETTINGS:
        yield "W007", line, "Correct the name, or remove it. manage.py settings lists all names."


def _auth_url() -> Iterator[Problem]:
    hint = "Give the base address that clients call, for example https://identity.example.org."
    url, *rest = re.split("[?#]", settings.AUTH_URL, maxsplit=1)
    if not _URL.fullmatch(url):
        yield "E001", "AUTH_URL is not an absolute http or https address.", hint
    if url.endswith("/"):
        yield "E002", "AUTH_URL ends with a slash, and so would the issuer.", hint
    if rest:
        yield "E003", "AUTH_URL has a query or a fragment.", hint


def _mtls_url() -> Iterator[Problem]:
    url = settings.MTLS_URL
    if not url:
        return
    if not re.fullmatch(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[^\s?#]*[^\s?#/])?", url):
        yield (
            "E015",
            "MTLS_URL is not an absolute https address without a slash at its end.",
            "Give the base address at which clients present certificates, for example"
            " https://mtls.identity.example.org, or leave it empty.",
        )
    elif not settings.TRUSTED_PROXIES:
        yield (
            "E016",
            "MTLS_URL is set, but no proxy is trusted: no certificate of a client is believed.",
            "Put the proxy that asks clients for certificates into TRUSTED_PROXIES.",
        )
    elif settings.ENVIRONMENT == "live" and not settings.PROXY_SECRETS:
        yield (
            "E018",
            "MTLS_URL is set without PROXY_SECRET: each process on the machine of a trusted proxy"
            " could log in as any client that has a certificate.",
            "Give proxy and nodes the same PROXY_SECRET (docs/scaling.md, Client certificates).",
        )
    if any(not _PROXY_SECRET.fullmatch(secret) for secret in settings.PROXY_SECRETS):
        yield (
            "E019",
            "PROXY_SECRET has fewer than 32 characters, or others than letters, digits, _ and -.",
            "Make it at random: python -c 'import secrets; print(secrets.token_urlsafe(48))'.",
        )


def _system_warnings() -> Iterator[Problem]:
    hint = (
        'For example [{"text": "HTTP Basic is refused.", "from": "2027-01-31", "condition":'
        ' "client_secret_basic"}].'
    )
    yield from (("E017", fault, hint) for fault in faults_of(settings.SYSTEM_WARNINGS))


def _patterns() -> Iterator[Problem]:
    for name in ("TIN_PATTERN", "ROB_PATTERN"):
        pattern = getattr(settings, name)
        try:
            re.compile(pattern)
        except re.error as error:
            yield "E004", f"{name} is not a regular expression: {error}.", "See Python's re."
            continue
        separators = [mark for mark in ":," if _allows(pattern, mark)]
        if separators:
            yield (
                "E005",
                f"{name} allows {' and '.join(separators)}, which separate numbers.",
                "List the characters of a number, for example [A-Z0-9]{5,20}.",
            )


# Not characters of the pattern: {1,20}, (?:, (?!
_NOT_CHARACTERS = re.compile(r"\{\d*,?\d*\}|\(\?(?:<?[=!]|:)")
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _allows(pattern: str, character: str) -> bool:
    # Does any escape, class or character of the pattern, taken alone, match this character?
    atoms = _ATOM.findall(_NOT_CHARACTERS.sub("", pattern))
    return any(_matches(atom, character) for atom in atoms)


def _matches(atom: str, character: str) -> bool:
    try:
        return re.fullmatch(atom, character) is not None
    except re.error:  # a bracket or a repetition
        return False


def _scopes() -> Iterator[Problem]:
    hint = 'For example {"InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "…"}}.'
    scopes: object = settings.SCOPES
    if not isinstance(scopes, dict) or not scopes:
        yield "E006", "SCOPES is not a JSON object with at least one scope.", hint
        return
    for name, scope in scopes.items():
        if not _SCOPE_NAME.fullmatch(name):
            yield "E007", f"The scope {name!r} has a character that RFC 6749 does not allow.", hint
        if not isinstance(scope, dict) or not _are_strings(
            scope.get("description"), scope.get("audience")
        ):
            yield "E008", f"The scope {name!r} has no description or no audience.", hint
    if len(" ".join(scopes)) > _MAX_SCOPES_LENGTH:
        yield "E009", f"The names in SCOPES are longer than {_MAX_SCOPES_LENGTH} in total.", hint


def _are_strings(*values: object) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _algorithm() -> Iterator[Problem]:
    if settings.SIGNING_ALGORITHM not in ALGORITHMS:
        hint = f"Use {', '.join(ALGORITHMS)}."
        yield "E010", f"SIGNING_ALGORITHM is unknown: {settings.SIGNING_ALGORITHM}.", hint


def _encryption_keys() -> Iterator[Problem]:
    keys: Iterable[str] = settings.KEY_ENCRYPTION_KEYS
    if any(len(key) < _MIN_KEY_LENGTH for key in keys):
        yield (
            "E011",
            f"KEY_ENCRYPTION_KEYS has a key with fewer than {_MIN_KEY_LENGTH} characters.",
            "Make each at random: python -c 'import secrets; print(secrets.token_urlsafe(48))'.",
        )


def _proxies() -> Iterator[Problem]:
    for proxy in settings.TRUSTED_PROXIES:
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            yield (
                "E012",
                f"TRUSTED_PROXIES: {proxy!r} is not an address or a network.",
                "For example 10.0.0.1, 10.0.0.0/8 or fd00::/8, separated by commas.",
            )


def _numbers() -> Iterator[Problem]:
    for line in settings.WRONG_SETTINGS:
        yield "E013", line, "The server does not start with it. Remove it to use the default."


def _bind() -> Iterator[Problem]:
    if not (_is_address(settings.BIND) or _HOST_NAME.fullmatch(settings.BIND)):
        yield (
            "E014",
            f"BIND: {settings.BIND!r} is not an address on which a server can listen.",
            "For example 127.0.0.1, 0.0.0.0, ::1 or localhost; the port is in PORT.",
        )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
