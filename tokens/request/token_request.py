"""A login request as sent, and what it asks for (contract 1; RFC 6749 section 4.4.2). Pure."""

import re
from contextlib import suppress

from taxpayers.credentials import Environment
from taxpayers.facts.values import ASSERTION
from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId
from taxpayers.redaction import shown
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.client_auth import client_secret, methods
from tokens.client_auth.assertion import MAX_LENGTH, SentAssertion
from tokens.client_auth.certificate import CertificateHeaders
from tokens.form_encoding import malformed, percent_decoded
from tokens.refusals.table import NO_CREDENTIALS, ProtocolReason
from tokens.request.form import Form, read_form
from tokens.request.on_behalf_of import read_on_behalf_of

GRANT_TYPE = "client_credentials"
_CLIENT_ID_LENGTH = 64  # of what is stored of it
_LONGEST_ID = 1024  # of what is read of it in a request that is refused anyway

_SCOPE_TOKEN = r"[\x21\x23-\x5B\x5D-\x7E]+"
_SCOPES = re.compile(rf"{_SCOPE_TOKEN}(?: {_SCOPE_TOKEN})*")  # RFC 6749 section 3.3


class RawTokenRequest(Value):
    """The parts of an HTTP request that a login is read from; None where a header is absent."""

    method: str = "POST"
    is_secure: bool = True  # the client's own connection was HTTPS, or need not be
    body: Hidden[bytes] = b""  # one byte longer than the limit shows that it is too long
    body_fault: str = ""  # why it could not be read
    content_type: str = ""
    query_string: Hidden[str] = ""
    authorization: Hidden[str] = ""
    accept: str = ""
    on_behalf_of: str | None = None
    on_behalf_of_is_misspelled: bool = False  # another header was meant as `onbehalfof`
    certificate: CertificateHeaders | None = None  # as a trusted proxy reports it
    dpop: Hidden[str | None] = None


class TokenRequest(Value):
    """What a client asks for; for some clients its proof and its certificate mean nothing."""

    credentials: methods.CheckedCredentials
    scopes: tuple[str, ...] | None  # None: none is asked for
    on_behalf_of: TaxpayerId | None
    dpop: Hidden[str | None] = None  # the header as sent
    certificate: CertificateHeaders | None = None  # as a trusted proxy reports it

    @property
    def client_id(self) -> str:
        return self.credentials.client_id


class UnreadableRequest(Value):
    """What can be recognized in a request that is no `TokenRequest`, for its record only."""

    client_id: str = ""  # as it is stored and logged: cut, printable, and never a secret
    on_behalf_of: TaxpayerId | None = None


def read_token_request(
    raw: RawTokenRequest, *, notation: Notation, environment: Environment, issuer: str
) -> TokenRequest:
    """What the request asks for. Raises Refused with the first fault, in the contract's order."""
    form, sent = _read_form_and_credentials(raw)
    grant_type = form.values.get("grant_type", "")
    _check_present(sent, grant_type=grant_type)
    if grant_type != GRANT_TYPE:
        raise Refused(ProtocolReason.UNSUPPORTED_GRANT_TYPE)
    on_behalf_of = read_on_behalf_of(
        raw.on_behalf_of,
        notation,
        is_misspelled=raw.on_behalf_of_is_misspelled,
        parameters=form.names,
    )
    credentials = methods.check_form(sent, environment, issuer)
    scopes = _read_scopes(form.values.get("scope", ""))
    return TokenRequest(credentials, scopes, on_behalf_of, raw.dpop, raw.certificate)


def read_client_request(
    raw: RawTokenRequest, parameter: str, *, environment: Environment, issuer: str
) -> tuple[methods.CheckedCredentials, str]:
    """Who sends a request about one thing, and the value of this parameter. Raises Refused."""
    sent, value = _read_client_and(parameter, raw)
    return methods.check_form(sent, environment, issuer), value


def read_api_request(
    raw: RawTokenRequest, parameter: str, *, environment: Environment
) -> tuple[client_secret.ClientSecretCredentials, str]:
    """The same for callers that have a secret and nothing else: protected APIs."""
    sent, value = _read_client_and(parameter, raw)
    if not isinstance(sent, client_secret.SentSecret):
        raise malformed("a protected API authenticates with client_id and client_secret")
    return client_secret.check_form(sent, environment, is_api=True), value


def _read_client_and(parameter: str, raw: RawTokenRequest) -> tuple[methods.SentCredentials, str]:
    form, sent = _read_form_and_credentials(raw)
    value = form.values.get(parameter, "")
    _check_present(sent, **{parameter: value})
    return sent, value


def _read_form_and_credentials(raw: RawTokenRequest) -> tuple[Form, methods.SentCredentials]:
    if raw.method != "POST":
        raise Refused(ProtocolReason.METHOD_NOT_ALLOWED)
    if not raw.is_secure:
        raise Refused(ProtocolReason.INSECURE_TRANSPORT)
    if raw.body_fault:
        raise malformed(f"the body cannot be read: {raw.body_fault}")
    form = read_form(raw.body, raw.content_type, raw.query_string)
    return form, methods.read_credentials(form.values, raw.authorization, raw.certificate)


def _check_present(sent: methods.SentCredentials, **parameters: str) -> None:
    for name, value in (parameters | sent.parameters).items():
        if not value:
            detail = NO_CREDENTIALS if name == "client_secret" else ""
            raise Refused(ProtocolReason.MISSING_PARAMETER, parameter=name, detail=detail)


def recognize(raw: RawTokenRequest, notation: Notation) -> UnreadableRequest:
    """Whatever can be told of a request that was refused; empty where nothing can. Never raises."""
    try:
        client_id = client_secret.read_credentials({}, raw.authorization).client_id
    except Refused:
        client_id = ""
    try:
        on_behalf_of = notation.parse(raw.on_behalf_of) if raw.on_behalf_of else None
    except MalformedIdentifier:
        on_behalf_of = None
    sent = client_id or _value_in(raw.body, b"client_id", _LONGEST_ID)
    if not sent:
        assertion = _value_in(raw.body, ASSERTION.encode(), MAX_LENGTH)
        sent = SentAssertion("", assertion, "").client_id
    return UnreadableRequest(shown(sent, _CLIENT_ID_LENGTH), on_behalf_of)


def _value_in(body: bytes, name: bytes, most: int) -> str:
    """The first value of this parameter in a form that may be malformed."""
    # At once, without reading the others: they may be thousands.
    _, _, after = (b"&" + body).partition(b"&" + name + b"=")
    value = after[:most].partition(b"&")[0]
    with suppress(ValueError):  # then as it was sent
        value = percent_decoded(value.replace(b"+", b" "))
    return value.decode(errors="replace")


def _read_scopes(text: str) -> tuple[str, ...] | None:
    if not text:
        return None
    # Anything but names with one space between them is taken as one name, which is unknown: so it
    # is refused where unknown scopes are, and only a caller whose secret matched learns of it.
    return tuple(dict.fromkeys(text.split(" "))) if _SCOPES.fullmatch(text) else (text,)
