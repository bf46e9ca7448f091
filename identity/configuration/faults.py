"""What is wrong with the value of one setting: `manage.py check` and the server name it. Pure.

What needs two settings or the protocol is in `tokens.checks` and `identity.staff.checks`.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

Fault = tuple[str, str, str]  # id, message, hint

_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::\d+)?(?:/[^\s]*)?")
_CERTIFICATE_URL = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[^\s?#]*[^\s?#/])?")
_PROXY_SECRET = re.compile(r"[A-Za-z0-9_-]{32,}")  # as a header of nginx takes it
_ED25519 = re.compile(r"[A-Za-z0-9_-]{43}")
_MIN_KEY_LENGTH = 32
_SCOPE_NAME = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")  # RFC 6749 section 3.3
_HOST_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
_MAX_SCOPES_LENGTH = 255  # of the columns of a system user and of a login event
_MAKE = "python -c 'import secrets; print(secrets.token_urlsafe(48))'."

# Warnings of `check --deploy`, which a live server does not start with unless ACCEPTED_RISKS has
# them: no TLS, no proxy or every proxy trusted, wrong hosts, one address for certificates too, the
# database unprotected, a short SECRET_KEY, DEBUG.
DANGERS = {f"tokens.W{number:03}" for number in (1, 2, 4, 5, 6, 8, 9)}
DANGERS |= {"security.W009", "security.W018"}


def host_of(url: str) -> str:
    """The host name of an http or https address; empty if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket without its other half
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


def auth_url(value: str) -> Iterator[Fault]:
    """The base address that clients call, and the issuer."""
    hint = "Give the base address that clients call, for example https://identity.example.org."
    url, *rest = re.split("[?#]", value, maxsplit=1)
    if not _URL.fullmatch(url):
        yield "tokens.E001", "AUTH_URL is not an absolute http or https address.", hint
    if url.endswith("/"):
        yield "tokens.E002", "AUTH_URL ends with a slash, and so would the issuer.", hint
    if rest:
        yield "tokens.E003", "AUTH_URL has a query or a fragment.", hint


def _unless(is_right: Callable[[str], object], *fault: str) -> Callable[[Any], Iterator[Fault]]:
    """Names this fault of each text that is not right; the message may show it by `{!r}`."""
    id_, message, hint = fault

    def check(value: str | list[str]) -> Iterator[Fault]:
        values = [value] if isinstance(value, str) else value
        wrong = (message.format(one) for one in values if not is_right(one))
        yield from ((id_, text, hint) for text in dict.fromkeys(wrong))

    return check


def _is_made_by(make: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether this function takes a text."""

    def is_right(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return True

    return is_right


staff_url = _unless(
    host_of,
    "staff.E001",
    "STAFF_URL is not an absolute http or https address.",
    "Give the address that staff open, for example https://staff.id.example.org.",
)
certificate_url = _unless(
    lambda url: not url or _CERTIFICATE_URL.fullmatch(url),
    "tokens.E015",
    "MTLS_URL is not an absolute https address without a slash at its end.",
    "Give the base address at which clients present certificates, for example"
    " https://mtls.identity.example.org, or leave it empty.",
)
confirmation_url, portal_url = (
    _unless(
        lambda url: not url or host_of(url),
        "tokens.E020",
        f"{name} is not an absolute http or https address.",
        "Give an address that taxpayers can open, or leave it empty.",
    )
    for name in ("CONFIRM_URL", "PORTAL_URL")
)
proxy_secret = _unless(
    _PROXY_SECRET.fullmatch,
    "tokens.E019",
    "PROXY_SECRET has fewer than 32 characters, or others than letters, digits, _ and -.",
    f"Make it at random: {_MAKE}",
)
offline_block_keys = _unless(
    _ED25519.fullmatch,
    "tokens.E020",
    "OFFLINE_BLOCK_KEYS has a value that is no public key: 43 characters of base64url.",
    "Use what manage.py block_offline --new-key FILE prints.",
)
encryption_keys = _unless(
    lambda key: len(key) >= _MIN_KEY_LENGTH,
    "tokens.E011",
    f"KEY_ENCRYPTION_KEYS has a key with fewer than {_MIN_KEY_LENGTH} characters.",
    f"Make each at random: {_MAKE}",
)
trusted_proxies = _unless(
    _is_made_by(partial(ip_network, strict=False)),
    "tokens.E012",
    "TRUSTED_PROXIES: {!r} is not an address or a network.",
    "For example 10.0.0.1, 10.0.0.0/8 or fd00::/8, separated by commas.",
)
bind = _unless(
    lambda value: _is_made_by(ip_address)(value) or _HOST_NAME.fullmatch(value),
    "tokens.E014",
    "BIND: {!r} is not an address on which a server can listen.",
    "For example 127.0.0.1, 0.0.0.0, ::1 or localhost; the port is in PORT.",
)


def scopes(value: Any) -> Iterator[Fault]:
    """The scopes and their audiences."""
    hint = 'For example {"InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "…"}}.'
    if not isinstance(value, dict) or not value:
        yield "tokens.E006", "SCOPES is not a JSON object with at least one scope.", hint
        return
    for scope, about in value.items():
        if not _SCOPE_NAME.fullmatch(scope):
            message = f"The scope {scope!r} has a character that RFC 6749 does not allow."
            yield "tokens.E007", message, hint
        if not isinstance(about, dict) or not _are_texts(about, "description", "audience"):
            yield "tokens.E008", f"The scope {scope!r} has no description or no audience.", hint
    if len(" ".join(value)) > _MAX_SCOPES_LENGTH:
        message = f"The names in SCOPES are longer than {_MAX_SCOPES_LENGTH} in total."
        yield "tokens.E009", message, hint


def _are_texts(about: dict[str, Any], *names: str) -> bool:
    return all(isinstance(about.get(name), str) and about[name] for name in names)


def number_pattern(name: str, value: str) -> Iterator[Fault]:
    """How the numbers of taxpayers are written."""
    try:
        re.compile(value)
    except re.error as error:
        yield "tokens.E004", f"{name} is not a regular expression: {error}.", "See Python's re."
        return
    # Does any escape, class or character of the pattern match one of these?
    atoms = _ATOM.findall(_NOT_CHARACTERS.sub("", value))
    separators = [mark for mark in ":," if any(_matches(atom, mark) for atom in atoms)]
    if separators:
        yield (
            "tokens.E005",
            f"{name} allows {' and '.join(separators)}, which separate numbers.",
            "List the characters of a number, for example [A-Z0-9]{5,20}.",
        )


# Not characters of the pattern: {1,20}, (?:, (?!
_NOT_CHARACTERS = re.compile(r"\{\d*,?\d*\}|\(\?(?:<?[=!]|:)")
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _matches(atom: str, character: str) -> bool:
    try:
        return re.fullmatch(atom, character) is not None
    except re.error:  # a bracket or a repetition
        return False
