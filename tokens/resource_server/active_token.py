"""The steps that find who calls our own addresses, by a token (RFC 6750 2.1, RFC 9449 7)."""

import re
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from taxpayers.client_keys import ALGORITHM_NAMES
from taxpayers.facts.values import Facts
from taxpayers.rules import RegistryReason
from tokens.access_tokens.status import ACTIVE, status_of
from tokens.access_tokens.verification import AccessToken, InvalidToken, verify
from tokens.answers.description import describe_proof_fault, format_moment_with_offset
from tokens.calls import Call
from tokens.dpop.proof import InvalidProof, ProofFault
from tokens.keys.signer import current_key_ring
from tokens.login_settings import login_settings
from tokens.resource_server import possession
from tokens.status_lists.offline_blocks import token_with_offline_block
from tokens.store.token_query import TokenReading, token_query

_ENDED = (
    "The token is no longer active: its client has ended it, or what it came from has changed."
    " Log in again; if the login is refused, its answer says why."
)
# Who repeats a request that revoked the secret, because its answer was lost, reads that it worked.
_SECRET_REVOKED = (
    "The client_secret by which this token was issued was revoked on {since}, and the token ended"
    " with it. Log in with another secret."
)
_TOKEN = re.compile(
    rf"({possession.BEARER}|{possession.DPOP}) +([A-Za-z0-9._-]+) *", re.ASCII | re.IGNORECASE
)
_SCHEMES = (possession.BEARER, possession.DPOP)
_MISSING = "No access token was sent. Send the header Authorization: Bearer, followed by a token."
_MALFORMED = "The header Authorization must be {scheme} and one token. Send it once."
BEARER_CHALLENGE = 'Bearer error="invalid_token"'  # RFC 6750 section 3


@dataclass(frozen=True, slots=True)
class ActiveToken:
    """A token that was active at the moment `at`, and the facts of its login at that moment."""

    is_authenticated: ClassVar[bool] = True  # Django REST framework expects it of a `user`

    token: AccessToken
    login: Facts  # its credential is the secret by which the token was issued
    at: datetime


class Unauthorized(Exception):
    """401: its text says why; `error` is its code, and `challenge` its WWW-Authenticate."""

    def __init__(
        self, text: str, challenge: str = BEARER_CHALLENGE, error: str = "invalid_token"
    ) -> None:
        super().__init__(text)
        self.challenge = challenge
        self.error = error


def dpop_challenge(text: str, error: str = "invalid_dpop_proof") -> Unauthorized:
    """401 in the words of RFC 9449 section 7.1."""
    algorithms = " ".join(ALGORITHM_NAMES)
    return Unauthorized(text, f'DPoP error="{error}", algs="{algorithms}"', error)


def invalid_proof(fault: ProofFault) -> Unauthorized:
    """401 for this fault of a proof."""
    return dpop_challenge(describe_proof_fault(fault))


def authenticate(sent: possession.ApiRequest, at: datetime) -> Generator[Call, Any, ActiveToken]:
    """The steps by which a token opens an address; `at` is about now, for its signature and time.

    A token in the body or in the query string is ignored (RFC 9700 section 4.3.2: it would end up
    in logs). Raises Unauthorized, or django.db.DatabaseError if keys cannot be read.
    """
    scheme = _scheme(sent.authorization)
    try:
        encoded = _token(sent.authorization, scheme)
        token = verified(encoded, at)
        proof = possession.check_possession(sent, scheme, encoded, token, at)
        caller = _active(token, (yield token_query(encoded)))
        if proof is not None:
            yield from possession.use_once(proof, token.client_id, token.confirmation.thumbprint)
    except InvalidProof as invalid:
        raise invalid_proof(invalid.fault) from None
    except InvalidToken as fault:
        if scheme == possession.DPOP or isinstance(fault, possession.MustBeBound):
            raise dpop_challenge(str(fault), "invalid_token") from None
        raise Unauthorized(str(fault)) from None
    return caller


def _active(token: AccessToken, reading: TokenReading) -> ActiveToken:
    """The token as it is now. Raises InvalidToken if it is not active."""
    facts = token_with_offline_block(reading.token)
    status = status_of(token, facts, known_scopes=login_settings().scopes, at=reading.at)
    login = facts.login
    if status == ACTIVE and login is not None:
        return ActiveToken(token, login, reading.at)
    revoked_at = login.credential.revoked_at if login else None
    if status == RegistryReason.SECRET_REVOKED and revoked_at is not None:
        raise InvalidToken(_SECRET_REVOKED.format(since=format_moment_with_offset(revoked_at)))
    raise InvalidToken(_ENDED)


def verified_token(header: str, at: datetime) -> AccessToken:
    """The token of this header, only by its signature and time. Raises InvalidToken."""
    return verified(_token(header, _scheme(header)), at)


def verified(encoded: str, at: datetime, *audiences: str) -> AccessToken:
    """Its content, by its signature and time, for these audiences or any. Raises InvalidToken."""
    own = login_settings()
    return verify(
        encoded,
        current_key_ring(at),
        issuer=own.issuer,
        audiences=set(audiences or own.audiences.values()),
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
        raise InvalidToken(
            _MALFORMED.format(scheme={possession.DPOP: "DPoP"}.get(scheme, "Bearer"))
        )
    return match[2]
