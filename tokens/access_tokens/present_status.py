"""The status of one verified token now, on Django's connection: for APIs of this service."""

from django.conf import settings

from taxpayers.shut_down import answered_within
from tokens.access_tokens.status import status_of
from tokens.access_tokens.token_query import TokenReading, token_query
from tokens.access_tokens.verification import AccessToken
from tokens.login_events import store

_ANSWER_SECONDS = 1.5  # so that a database that hangs is a 503 within 2 seconds


def present_status(encoded: str, token: AccessToken) -> str:
    """As `status_of`; `encoded` is the token as sent. Raises django.db.DatabaseError."""
    with answered_within(_ANSWER_SECONDS):
        reading: TokenReading = store.perform(token_query(encoded))
    return status_of(token, reading.token, known_scopes=settings.SCOPES, at=reading.at)
