"""Client authentication with a secret, in the body or by HTTP Basic (RFC 6749 2.3.1). Pure."""

import base64
import binascii
from collections.abc import Mapping

from taxpayers.credentials import Environment, Prefix, fault_of, hash_secret
from taxpayers.facts.values import Facts
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.form_encoding import malformed, percent_decoded
from tokens.refusals.table import ProtocolReason

_LONGEST_BASIC = 1024  # a pair of ours has 376 characters, if every one of its own is escaped
_OF_CLIENTS = Prefix.CLIENT_ID, Prefix.CLIENT_SECRET
_OF_APIS = Prefix.API_ID, Prefix.API_SECRET
_BASIC_FAULT = "the Basic Authorization header is not base64 of client_id:client_secret"


class SentSecret(Value):
    """An id and a secret as sent; either may be empty."""

    method: Method
    client_id: str
    client_secret: Hidden[str]

    @property
    def parameters(self) -> dict[str, str]:
        """Those that must be there."""
        return {"client_id": self.client_id, "client_secret": self.client_secret}


class ClientSecretCredentials(Value):
    """The same, whose form is right: from here on there is only the hash of the secret."""

    method: Method
    client_id: str
    lookup: Hidden[str]

    @property
    def denial_key(self) -> str:
        """Key for remembered denials: the hash of the secret."""
        return self.lookup


def read_credentials(form: Mapping[str, str], authorization: str) -> SentSecret:
    """The credentials of the form or of the header Authorization. Raises Refused if of both."""
    client_id, client_secret = form.get("client_id", ""), form.get("client_secret", "")
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        # Real clients send a stale Bearer token here: it means nothing.
        return SentSecret(Method.CLIENT_SECRET_POST, client_id, client_secret)
    basic_id, basic_secret = _read_basic(value.strip())
    if client_secret or client_id not in ("", basic_id):
        raise malformed("the credentials are sent both in the Authorization header and the body")
    return SentSecret(Method.CLIENT_SECRET_BASIC, basic_id, basic_secret)


def check_form(
    sent: SentSecret, environment: Environment, *, is_api: bool = False
) -> ClientSecretCredentials:
    """Raises Refused if no id or secret of this form was ever issued; `is_api`: to an API."""
    of_id, of_secret = _OF_APIS if is_api else _OF_CLIENTS
    _check(of_id, "client_id", sent.client_id, environment)
    _check(of_secret, "client_secret", sent.client_secret, environment)
    return ClientSecretCredentials(sent.method, sent.client_id, hash_secret(sent.client_secret))


def check_client_id(client_id: str, environment: Environment) -> None:
    """Raises Refused if an id of this form was never issued."""
    _check(Prefix.CLIENT_ID, "client_id", client_id, environment)


def _check(kind: Prefix, parameter: str, value: str, environment: Environment) -> None:
    fault = fault_of(value, kind, environment)
    if fault is not None:
        raise Refused(ProtocolReason.MALFORMED_CREDENTIALS, parameter=parameter, detail=str(fault))


def authenticate(credentials: ClientSecretCredentials, facts: Facts | None) -> AuthenticatedClient:
    """The client that these credentials belong to; `facts` are those of this very id and secret.

    Raises Refused if there are none: an unknown id and a wrong secret are one.
    """
    if facts is None:
        raise Refused(ProtocolReason.INVALID_CREDENTIALS)
    return AuthenticatedClient(credentials.method, facts)


def _read_basic(value: str) -> tuple[str, str]:
    try:
        if len(value) > _LONGEST_BASIC:
            raise ValueError
        pair = base64.b64decode(value, validate=True)
        client_id, colon, client_secret = pair.replace(b"+", b" ").partition(b":")
        if colon and pair.isascii():
            # Form-encoded inside, as the RFC wants it.
            return percent_decoded(client_id).decode(), percent_decoded(client_secret).decode()
    except (binascii.Error, ValueError):
        pass
    raise malformed(_BASIC_FAULT)
