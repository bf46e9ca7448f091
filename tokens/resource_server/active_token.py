"""Who calls an API of this service: the bearer of a token that is active by the registry."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.conf import settings

from taxpayers.facts.values import Facts
from taxpayers.rules import RegistryReason
from taxpayers.shut_down import answered_within
from tokens.access_tokens.status import ACTIVE, status_of
from tokens.access_tokens.verification import AccessToken, InvalidToken
from tokens.answers.description import format_moment_with_offset
from tokens.resource_server.authentication import AccessTokenAuthentication
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
    status = status_of(token, facts, known_scopes=settings.SCOPES, at=reading.at)
    login = facts.login
    if status == ACTIVE and login is not None:
        return ActiveToken(token, login, reading.at)
    revoked_at = login.credential.revoked_at if login else None
    if status == RegistryReason.SECRET_REVOKED and revoked_at is not None:
        raise InvalidToken(_SECRET_REVOKED.format(since=format_moment_with_offset(revoked_at)))
    raise InvalidToken(_ENDED)


class ActiveTokenAuthentication(AccessTokenAuthentication):
    """Also asks the registry: a token of a blocked client is refused at once.

    `request.user` is an `ActiveToken`.
    """

    def caller_of(self, encoded: str, token: AccessToken) -> ActiveToken:
        """Raises InvalidToken, or django.db.DatabaseError if the registry cannot be read."""
        return require_active(encoded, token)
