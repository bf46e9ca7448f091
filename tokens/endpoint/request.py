"""A login request as sent, and what it asks for (contract 1; RFC 6749 sections 2.3.1, 3.2, 4.4.2).

Pure: bytes and header values in, an `TokenRequest` or a refusal out. Nothing is looked up.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote_plus

from taxpayers.credentials import Environment, Fault, Kind, fault_of
from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId
from taxpayers.rules import Reason, Refusal, Refused

MAX_BODY_BYTES = 16 * 1024
GRANT_TYPE = "client_credentials"
_FORM = "application/x-www-form-urlencoded"
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"}
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_FIELDS = 100
_CREDENTIALS = frozenset({"client_id", "client_secret"})


@dataclass(frozen=True, slots=True)
class RawTokenRequest:
    """The parts of an HTTP request that a login is read from; None where a header is absent.

    `body` may be one byte longer than MAX_BODY_BYTES, to show that it was too long.
    """

    body: bytes = field(repr=False)
    content_type: str = ""
    query_string: str = field(default="", repr=False)
    authorization: str | None = field(default=None, repr=False)
    on_behalf_of: str | None = None


@dataclass(slots=True)
class TokenRequest:
    """What a client asks for. Filled step by step, so that a refusal knows what was read so far.

    `scopes` is None when nothing was asked for.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    grant_type: str = ""
    scopes: tuple[str, ...] | None = None
    on_behalf_of: TaxpayerId | None = None


def read_token_request(
    raw: RawTokenRequest, attempt: TokenRequest, *, notation: Notation, environment: Environment
) -> None:
    """Fill `attempt` from the request, one check after the other in the contract's order.

    Raises Refused with the first fault found.
    """
    form = _form(raw)
    _read_credentials(raw, form, attempt)
    _require(form, attempt)
    if attempt.grant_type != GRANT_TYPE:
        raise Refused(Refusal(Reason.UNSUPPORTED_GRANT_TYPE))
    scope = form.get("scope", "").split()
    attempt.scopes = tuple(dict.fromkeys(scope)) or None
    if raw.on_behalf_of is not None:
        attempt.on_behalf_of = _on_behalf_of(raw.on_behalf_of, notation)
    for kind, parameter, value in (
        (Kind.CLIENT_ID, "client_id", attempt.client_id),
        (Kind.CLIENT_SECRET, "client_secret", attempt.client_secret),
    ):
        fault = fault_of(value, kind, environment)
        if fault is not None:
            raise Refused(Refusal(Reason.MALFORMED_CREDENTIALS, detail=f"{parameter}:{fault}"))


def _form(raw: RawTokenRequest) -> dict[str, str]:
    media_type, _, parameters = raw.content_type.partition(";")
    if media_type.strip().lower() != _FORM:
        raise _malformed(f"the body must be a form with the Content-Type {_FORM}")
    if len(raw.body) > MAX_BODY_BYTES:
        raise _malformed(f"the body is longer than {MAX_BODY_BYTES} bytes")
    query = _pairs(raw.query_string, "utf-8", "query string")
    if any(name in _CREDENTIALS for name, _ in query):
        raise _malformed(
            "client_id and client_secret belong in the body: in the query string they end up in"
            " logs. Take this secret for leaked and have it replaced"
        )
    charset = _charset(parameters)
    try:
        text = raw.body.decode("ascii")
    except UnicodeDecodeError:
        raise _malformed("the body has bytes that are not percent-encoded") from None
    form: dict[str, str] = {}
    for name, value in _pairs(text, charset, "body"):
        if not value:
            continue  # as if it were left out (RFC 6749 section 3.2), so it repeats nothing
        if name in form:
            raise _malformed(f"the parameter {name[:40]} is sent more than once")
        form[name] = value
    return form


def _charset(parameters: str) -> str:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
            if charset not in _CHARSETS:
                raise _malformed("the charset of the Content-Type must be UTF-8")
            return charset
    return "utf-8"


def _pairs(text: str, charset: str, where: str) -> list[tuple[str, str]]:
    if not text:
        return []
    if _BAD_ESCAPE.search(text):
        raise _malformed(f"the {where} has a percent sign without two hexadecimal digits")
    try:
        return parse_qsl(
            text,
            keep_blank_values=True,
            encoding=charset,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except UnicodeDecodeError:
        raise _malformed(f"the {where} is not percent-encoded {charset.upper()}") from None
    except ValueError:
        raise _malformed(f"the {where} has more than {_MAX_FIELDS} parameters") from None


def _read_credentials(raw: RawTokenRequest, form: dict[str, str], attempt: TokenRequest) -> None:
    attempt.grant_type = form.get("grant_type", "")
    attempt.client_id = form.get("client_id", "")
    attempt.client_secret = form.get("client_secret", "")
    scheme, _, value = (raw.authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return  # A stale Bearer token is what real clients send here; it says nothing.
    client_id, client_secret = _basic(value.strip())
    if attempt.client_secret or attempt.client_id not in ("", client_id):
        raise _malformed("the credentials are sent both in the Authorization header and the body")
    attempt.client_id, attempt.client_secret = client_id, client_secret


def _basic(value: str) -> tuple[str, str]:
    fault = "the Basic Authorization header is not base64 of client_id:client_secret"
    try:
        text = base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise _malformed(fault) from None
    client_id, colon, client_secret = text.partition(":")
    if not colon or _BAD_ESCAPE.search(text):
        raise _malformed(fault)
    try:
        return unquote_plus(client_id, errors="strict"), unquote_plus(
            client_secret, errors="strict"
        )
    except UnicodeDecodeError:
        raise _malformed(fault) from None


def _require(form: dict[str, str], attempt: TokenRequest) -> None:
    for name, value in (
        ("grant_type", attempt.grant_type),
        ("client_id", attempt.client_id),
        ("client_secret", attempt.client_secret),
    ):
        if not value:
            raise Refused(Refusal(Reason.MISSING_PARAMETER, detail=name))


def _on_behalf_of(header: str, notation: Notation) -> TaxpayerId:
    if not header.strip(" \t"):
        raise _malformed_on_behalf_of("it is empty")
    if "," in header:
        raise _malformed_on_behalf_of("it is sent twice or holds a list")
    try:
        return notation.parse(header)
    except MalformedIdentifier as fault:
        raise _malformed_on_behalf_of(str(fault)) from None


def _malformed(fault: str) -> Refused:
    return Refused(Refusal(Reason.MALFORMED_REQUEST, detail=fault))


def _malformed_on_behalf_of(fault: str) -> Refused:
    return Refused(Refusal(Reason.MALFORMED_ON_BEHALF_OF, detail=fault))


def fault_named(detail: str) -> tuple[str, Fault]:
    """The parameter and the fault that the detail of `malformed_credentials` holds."""
    parameter, _, fault = detail.partition(":")
    return parameter, Fault(fault)
