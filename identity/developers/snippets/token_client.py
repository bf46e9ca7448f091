"""Fetches access tokens, and uses each until shortly before it expires. Needs requests."""

import os
import sys
import time

import requests

AUTH_URL = "http://127.0.0.1:8000"
RENEW_EARLIER_SECONDS = 300


class Refused(Exception):
    """There is no token; the text says what to do, and ends with a reference for support."""


class TokenClient:
    """One for each client ID; it stores one token for each taxpayer that you act for."""

    def __init__(self, client_id: str, client_secret: str) -> None:
        self._credentials = {"client_id": client_id, "client_secret": client_secret}
        self._tokens: dict[str, tuple[str, float]] = {}

    def token(self, on_behalf_of: str = "") -> str:
        """For your own taxpayer, or for another one: TIN or TIN:ROB."""
        token, renew_at = self._tokens.get(on_behalf_of, ("", 0.0))
        if time.monotonic() >= renew_at:
            token, seconds = self._log_in(on_behalf_of)
            renew_at = time.monotonic() + seconds - RENEW_EARLIER_SECONDS
            self._tokens[on_behalf_of] = token, renew_at
        return token

    def _log_in(self, on_behalf_of: str) -> tuple[str, int]:
        answer = self._post(on_behalf_of)
        for _ in range(4):
            if answer.status_code not in (429, 503):
                break
            time.sleep(int(answer.headers.get("Retry-After", 5)))
            answer = self._post(on_behalf_of)
        body = answer.json()
        if answer.status_code != 200:
            raise Refused(body["error_description"])
        return body["access_token"], body["expires_in"]

    def _post(self, on_behalf_of: str) -> requests.Response:
        return requests.post(
            f"{AUTH_URL}/connect/token",
            data={"grant_type": "client_credentials", **self._credentials},
            headers={"onbehalfof": on_behalf_of} if on_behalf_of else {},
            timeout=10,
        )


def main() -> None:
    """Ask twice which taxpayer the token represents; both calls use one token."""
    client = TokenClient(os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
    for _ in range(2):
        token = client.token(os.environ.get("ONBEHALFOF", ""))
        headers = {"Authorization": f"Bearer {token}"}
        sys.stdout.write(requests.get(f"{AUTH_URL}/api/v1/me", headers=headers, timeout=10).text)


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        sys.exit(str(refused))
