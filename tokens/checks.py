"""System checks: `manage.py check` finds wrong settings before a client does (contract 6)."""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from tokens.keys.ring import ALGORITHMS
from tokens.system_warnings import faults_of

Problem = tuple[str, str, str]  # id, message, hint


def check_settings(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Errors: what no process can work with."""
    others = (*_certificates(), *_other_values())
    found = (*_of_each_setting(), *((f"tokens.{id_}", *rest) for id_, *rest in others))
    return [checks.Error(message, hint=hint, id=id_) for id_, message, hint in found]


def _of_each_setting() -> Iterator[Problem]:
    for setting in settings.SETTING_LIST.values():
        if hasattr(settings, setting.name):  # not of the staff pages where SERVE=login
            yield from setting.check(getattr(settings, setting.name))


def check_deployment(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warnings: what is right on a developer's machine and wrong in production."""
    return [
        checks.Warning(message, hint=hint, id=f"tokens.{id_}")
        for check in (_transport, _hosts, _proxies_of_everybody, _unknown_names, _database)
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
    if settings.MTLS_URL and settings.MTLS_URL == settings.AUTH_URL:
        yield (
            "W008",
            "MTLS_URL is AUTH_URL: clients on Windows without a certificate are cut off there.",
            "Give certificates their own host, for example https://mtls.id.example.org.",
        )


def _database() -> Iterator[Problem]:
    database = settings.DATABASES["default"]
    host, options = database.get("HOST", ""), database.get("OPTIONS", {})
    is_local = not host or host.startswith("/") or host == "localhost" or _is_loopback(host)
    if not is_local and options.get("sslmode") not in ("verify-ca", "verify-full"):
        yield (
            "W009",
            f"The connection to the database at {host} is not protected: another machine of the"
            " network could read it, or answer instead of the database.",
            "Add sslmode=verify-full&sslrootcert=FILE to DATABASE_URL (docs/operations.md).",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


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
                "List only the addresses of the proxies, for example 10.0.0.5.",
            )


def _unknown_names() -> Iterator[Problem]:
    for line in settings.UNKNOWN_SETTINGS:
        yield "W007", line, "Correct the name, or remove it. manage.py settings lists all names."


def _certificates() -> Iterator[Problem]:
    if settings.MTLS_URL and not settings.TRUSTED_PROXIES:
        yield (
            "E016",
            "MTLS_URL is set, but no proxy is trusted: no certificate of a client is believed.",
            "Put the proxy that asks clients for certificates into TRUSTED_PROXIES.",
        )
    elif settings.MTLS_URL and settings.ENVIRONMENT == "live" and not settings.PROXY_SECRET:
        yield (
            "E018",
            "MTLS_URL is set without PROXY_SECRET: each process on the machine of a trusted proxy"
            " could log in as any client that has a certificate.",
            "Give proxy and nodes the same PROXY_SECRET (docs/scaling.md, Client certificates).",
        )


def _other_values() -> Iterator[Problem]:
    for line in settings.WRONG_SETTINGS:
        yield "E013", line, "The server does not start with it. Remove it to use the default."
    if settings.SIGNING_ALGORITHM not in ALGORITHMS:
        hint = f"Use {', '.join(ALGORITHMS)}."
        yield "E010", f"SIGNING_ALGORITHM is unknown: {settings.SIGNING_ALGORITHM}.", hint
    hint = (
        'For example [{"text": "HTTP Basic is refused.", "from": "2027-01-31", "condition":'
        ' "client_secret_basic"}].'
    )
    yield from (("E017", fault, hint) for fault in faults_of(settings.SYSTEM_WARNINGS))
