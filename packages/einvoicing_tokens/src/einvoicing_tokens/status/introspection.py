"""Whether a token is active, asked of the identity service for each request (RFC 7662)."""

import logging

from einvoicing_tokens.errors import InvalidToken, unavailable
from einvoicing_tokens.issuer.http_client import HttpClient
from einvoicing_tokens.issuer.metadata import Metadata, json_object
from einvoicing_tokens.status.status_lists import ENDED

logger = logging.getLogger("einvoicing_tokens")


class Introspection:
    """The service's answer for the credentials of a registered protected API."""

    def __init__(self, metadata: Metadata, http: HttpClient, credentials: tuple[str, str]) -> None:
        self._metadata, self._http, self._credentials = metadata, http, credentials

    def check(self, encoded: str) -> None:
        """Raises InvalidToken if the token is not active, Unavailable if there is no answer."""
        url = self._metadata.address("introspection_endpoint")
        status, body = self._http.post_form(url, {"token": encoded}, credentials=self._credentials)
        answer = json_object(body, url)
        if status != 200 or not isinstance(answer.get("active"), bool):
            # Mostly the credentials of this API: its operator must read why, its callers need not.
            logger.error("introspection: %s %s", status, answer.get("error_description", ""))
            raise unavailable(f"{url} answered {status}")
        if not answer["active"]:
            raise InvalidToken(ENDED)
