"""Who calls a protected API: who sends an access token (RFC 6750 section 2.1, RFC 9449 7)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from rest_framework import status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.request import Request

from taxpayers.client_keys import ALGORITHM_NAMES
from taxpayers.facts.values import Facts
from taxpayers.rules import RegistryReason
from taxpayers.shut_down import answered_within
from tokens.access_tokens.status import ACTIVE, status_of
from tokens.access_tokens.verification import AccessToken, InvalidToken, verify
from tokens.answers.description import describe_proof_fault, format_moment_with_offset
from tokens.dpop.proof import InvalidProof
from tokens.keys.signer import current_key_ring
from tokens.login_settings import login_settings
from tokens.request.arrival import called_url, reported_certificate
from tokens.resource_server.possession import BEARER, DPOP, MustBeBound, check_possession, use_once
from tokens.status_lists.offline_blocks import token_with_offline_block
from tokens.store import django_store as store
from tokens.store.token_query import TokenReading, token_query

ANSWER_SECONDS = 1.5  # so that a database that hangs is a 503 within 2 seconds
_ENDED = (
    "The token is no longer active: its client has ended it, or what it came from has changed."
    " Log in again; if the login is refused, its answer says why."
)
# Who repeats a request that revoked the secret, because its answer was lost, reads that it worked.
_SECRET_REVOKED = (
    "The client_secret by which this token was issued was revoked on {since}, and the token ended"
    " with it. Log in with another secret."
)


@dataclass(frozen=True, slots=True)
class ActiveToken:
    """A token that was active at the moment `at`, and the facts of its login at that moment.

    `login.credential` is the secret by which it was issued.
    """

    is_authenticated: ClassVar[bool] = True  # Django REST framework expects it of a `user`

    token: AccessToken
    login: Facts
    at: datetime


def require_active(encoded: str, token: AccessToken) -> ActiveToken:
    """The token as it is now; `encoded` is the token as sent.

    Raises InvalidToken if it is not active, or django.db.DatabaseError.
    """
    with answered_within(ANSWER_SECONDS):
        reading: TokenReading = store.perform(token_query(encoded))
    facts = token_with_offline_block(reading.token)
    status = status_of(token, facts, known_scopes=login_settings().scopes, at=reading.at)
    login = facts.login
    if status == ACTIVE and login is not None:
        return ActiveToken(token, login, reading.at)
    revoked_at = login.credential.revoked_at if login else None
    if status == RegistryReason.SECRET_REVOKED and revoked_at is not None:
        raise InvalidToken(_SECRET_REVOKED.format(since=format_moment_with_offset(revoked_at)))
    raise InvalidToken(_ENDED)


_TOKEN = re.compile(rf"({BEARER}|{DPOP}) +([A-Za-z0-9._-]+) *", re.ASCII | re.IGNORECASE)
_SCHEMES = (BEARER, DPOP)
_MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."
_MALFORMED = "The header Authorization must be {scheme} and one token. Send it once."


class DpopChallenge(APIException):
    """401 in the words of RFC 9449 section 7.1; `error` is its code."""

    status_code = status.HTTP_401_UNAUTHORIZED

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        algorithms = " ".join(ALGORITHM_NAMES)
        self.auth_header = f'DPoP error="{error}", algs="{algorithms}"'


class AccessTokenAuthentication(BaseAuthentication):
    """A verified `AccessToken` as `request.auth`; its caller as `request.user`.

    Anything else is a 401 that says why. A token in the body or in the query string is ignored
    (RFC 9700 section 4.3.2: it would end up in logs).
    """

    def authenticate(self, request: Request) -> tuple[Any, AccessToken]:
        """Raises AuthenticationFailed or DpopChallenge, or django.db.DatabaseError."""
        header = request.META.get("HTTP_AUTHORIZATION", "")
        scheme = _scheme(header)
        try:
            encoded = _token(header, scheme)
            at = datetime.now(UTC)
            access_token = _verified(encoded, at)
            called = self.called_url(request)
            proof = check_possession(request, scheme, encoded, access_token, at, called)
            caller = self.caller_of(encoded, access_token)
            if proof is not None:
                use_once(proof, access_token.client_id, access_token.confirmation.thumbprint)
        except InvalidProof as invalid:
            text = describe_proof_fault(invalid.fault)
            raise DpopChallenge("invalid_dpop_proof", text) from None
        except MustBeBound as fault:
            raise DpopChallenge("invalid_token", str(fault)) from None
        except InvalidToken as fault:
            if scheme == DPOP:
                raise DpopChallenge("invalid_token", str(fault)) from None
            raise AuthenticationFailed(str(fault)) from None
        return caller, access_token

    def called_url(self, request: Request) -> str:
        """The base address at which this API is called; a DPoP proof is for it."""
        return called_url(reported_certificate(request.META))

    def caller_of(self, encoded: str, token: AccessToken) -> Any:
        """What becomes `request.user`: the token itself, as there is no other user.

        May raise InvalidToken.
        """
        return token

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401 about a Bearer token (RFC 6750 section 3)."""
        return 'Bearer error="invalid_token"'


def verified_token(header: str, at: datetime) -> AccessToken:
    """The token of this header Authorization, by its signature and time. Raises InvalidToken.

    Whether it is still active, and whether it was stolen, is not asked.
    """
    return _verified(_token(header, _scheme(header)), at)


def _verified(encoded: str, at: datetime) -> AccessToken:
    """The content of a token by its signature and time. Raises InvalidToken."""
    return verify(
        encoded,
        current_key_ring(at),
        issuer=login_settings().issuer,
        audiences={*login_settings().audiences.values()},
        at=at,
    )


def _scheme(header: str) -> str:
    """How the token is sent, in lower case; empty if there is none."""
    return next((scheme for scheme in _SCHEMES if header.lower().startswith(scheme)), "")


def _token(header: str, scheme: str) -> str:
    if not scheme:
        raise InvalidToken(_MISSING)
    match = _TOKEN.fullmatch(header)
    if match is None:
        raise InvalidToken(_MALFORMED.format(scheme={DPOP: "DPoP"}.get(scheme, "Bearer")))
    return match[2]


class ActiveTokenAuthentication(AccessTokenAuthentication):
    """Also asks the registry: a token of a blocked client is refused at once.

    `request.user` is an `ActiveToken`.
    """

    def caller_of(self, encoded: str, token: AccessToken) -> ActiveToken:
        """Raises InvalidToken, or django.db.DatabaseError if the registry cannot be read."""
        return require_active(encoded, token)
