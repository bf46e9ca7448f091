"""Wrong configuration, found by `manage.py check` before a client finds it (contract 6)."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from typing import Any

from django.conf import settings
from django.core import checks

from tokens.keys.ring import ALGORITHMS

Fault = tuple[str, str, str]  # id, message, hint

_ADDRESS = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::\d+)?(?:/[^\s]*)?")
_SHORTEST_KEY = 32
_SCOPE_NAME = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")  # RFC 6749 section 3.3
_LONGEST_SCOPES = 255  # of a system user and of a login event, separated by blanks


@checks.register(checks.Tags.security)
def check_settings(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Each setting by itself, as an Error."""
    return [
        checks.Error(message, hint=hint, id=f"tokens.{id_}")
        for check in (_auth_url, _patterns, _scopes, _algorithm, _encryption_keys, _proxies)
        for id_, message, hint in check()
    ]


@checks.register(checks.Tags.security, deploy=True)
def check_deployment(**_kwargs: Any) -> list[checks.CheckMessage]:
    """What is right on a developer's machine and wrong in production, as a Warning."""
    return [
        checks.Warning(message, hint=hint, id=f"tokens.{id_}")
        for check in (_transport, _database, _hosts)
        for id_, message, hint in check()
    ]


def _transport() -> Iterator[Fault]:
    if not settings.AUTH_URL.startswith("https://"):
        yield (
            "W001",
            "AUTH_URL is not https: client secrets and tokens travel in clear.",
            "Put a proxy with TLS in front and its address into AUTH_URL (specification 5).",
        )
    elif not settings.TRUSTED_PROXIES:
        yield (
            "W002",
            "AUTH_URL is https, but no proxy is trusted: every login is refused as insecure.",
            "Name the proxy that ends TLS in TRUSTED_PROXIES, like 10.0.0.5.",
        )


def _database() -> Iterator[Fault]:
    if settings.ENVIRONMENT == "live" and settings.IS_EMBEDDED:
        yield (
            "W003",
            "ENVIRONMENT is live without DATABASE_URL: SQLite and the secrets lie in var/.",
            "Set DATABASE_URL to a PostgreSQL, and SECRET_KEY and KEY_ENCRYPTION_KEYS.",
        )


def _hosts() -> Iterator[Fault]:
    if "*" in settings.ALLOWED_HOSTS:
        yield (
            "W004",
            "ALLOWED_HOSTS admits every name: links can be made to lead elsewhere.",
            "Name the hosts of the staff's pages, like id.example.org.",
        )


def _auth_url() -> Iterator[Fault]:
    hint = "It is the base address that clients call, like https://identity.example.org."
    address, *rest = re.split("[?#]", settings.AUTH_URL, maxsplit=1)
    if not _ADDRESS.fullmatch(address):
        yield "E001", "AUTH_URL is not an absolute http or https address.", hint
    if address.endswith("/"):
        yield "E002", "AUTH_URL ends with a slash, so the issuer would too.", hint
    if rest:
        yield "E003", "AUTH_URL has a query or a fragment.", hint


def _patterns() -> Iterator[Fault]:
    for name in ("TIN_PATTERN", "ROB_PATTERN"):
        pattern = getattr(settings, name)
        try:
            re.compile(pattern)
        except re.error as fault:
            yield "E004", f"{name} is not a regular expression: {fault}.", "See Python's re."
            continue
        admitted = [mark for mark in ":," if _admits(pattern, mark)]
        if admitted:
            yield (
                "E005",
                f"{name} admits {' and '.join(admitted)}, which separate numbers.",
                "Name the characters that it consists of, like [A-Z0-9]{5,20}.",
            )


_NO_CHARACTER = re.compile(r"\{\d*,?\d*\}|\(\?(?:<?[=!]|:)")  # {1,20} and (?: hold no character
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _admits(pattern: str, character: str) -> bool:
    # Each escape, class or character of the pattern, by itself: does it match this one?
    return any(_matches(atom, character) for atom in _ATOM.findall(_NO_CHARACTER.sub("", pattern)))


def _matches(atom: str, character: str) -> bool:
    try:
        return re.fullmatch(atom, character) is not None
    except re.error:  # a bracket or a repetition, no character
        return False


def _scopes() -> Iterator[Fault]:
    hint = 'Like {"InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "…"}}.'
    scopes: object = settings.SCOPES
    if not isinstance(scopes, dict) or not scopes:
        yield "E006", "SCOPES is not an object with at least one scope.", hint
        return
    for name, scope in scopes.items():
        if not _SCOPE_NAME.fullmatch(name):
            yield "E007", f"The scope {name!r} has a character that OAuth does not allow.", hint
        if not isinstance(scope, dict) or not _are_texts(
            scope.get("description"), scope.get("audience")
        ):
            yield "E008", f"The scope {name!r} lacks a description or an audience.", hint
    if len(" ".join(scopes)) > _LONGEST_SCOPES:
        yield "E009", f"All names in SCOPES are longer than {_LONGEST_SCOPES} together.", hint


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _algorithm() -> Iterator[Fault]:
    if settings.SIGNING_ALGORITHM not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        yield "E010", f"SIGNING_ALGORITHM is unknown: {settings.SIGNING_ALGORITHM}.", f"{known}."


def _encryption_keys() -> Iterator[Fault]:
    keys: Iterable[str] = settings.KEY_ENCRYPTION_KEYS
    if any(len(key) < _SHORTEST_KEY for key in keys):
        yield (
            "E011",
            f"KEY_ENCRYPTION_KEYS has one with less than {_SHORTEST_KEY} characters.",
            "Make each at random: python -c 'import secrets; print(secrets.token_urlsafe(48))'.",
        )


def _proxies() -> Iterator[Fault]:
    for proxy in settings.TRUSTED_PROXIES:
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            yield (
                "E012",
                f"TRUSTED_PROXIES: {proxy!r} is no address or network.",
                "Like 10.0.0.1, 10.0.0.0/8 or fd00::/8, separated by commas.",
            )
