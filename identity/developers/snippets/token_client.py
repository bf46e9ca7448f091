"""Fetches access tokens, renews each in time, and uses it meanwhile. Needs requests."""

import os
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import requests

AUTH_URL = "http://127.0.0.1:8000"


class Refused(Exception):
    """There is no token; the text says what to do, and ends with a reference for support."""


@dataclass
class Stored:
    """A token, by this machine's clock that only goes forward; `failures` to renew it."""

    token: str = field(repr=False)
    renew_at: float
    ends_at: float
    failures: int = 0


class TokenClient:
    """One for each client ID; it stores one token for each taxpayer that you act for."""

    def __init__(self, client_id: str, client_secret: str) -> None:
        self._credentials = {"client_id": client_id, "client_secret": client_secret}
        self._tokens: dict[str, Stored] = {}

    def get(self, url: str, on_behalf_of: str = "") -> requests.Response:
        """Call an API. A token that it does not take any more (401) is replaced once."""
        headers = {"Authorization": f"Bearer {self.token(on_behalf_of)}"}
        answer = requests.get(url, headers=headers, timeout=60)
        if answer.status_code == 401:
            del self._tokens[on_behalf_of]
            headers = {"Authorization": f"Bearer {self.token(on_behalf_of)}"}
            answer = requests.get(url, headers=headers, timeout=60)
        return answer

    def token(self, on_behalf_of: str = "") -> str:
        """For your own taxpayer, or for another one: TIN or TIN:ROB."""
        stored = self._tokens.get(on_behalf_of)
        if stored is None or time.monotonic() >= min(stored.renew_at, stored.ends_at):
            stored = self._tokens[on_behalf_of] = self._renewed(stored, on_behalf_of)
        return stored.token

    def _renewed(self, old: "Stored | None", on_behalf_of: str) -> Stored:
        """The next token. While the service is away the old one, until it ends."""
        failures = old.failures if old else 0
        if old is not None:  # it ended before the pause
            time.sleep(max(0, old.renew_at - time.monotonic()))
        while True:
            now = time.monotonic()  # before the answer, which may be slow
            status, answer, pause = self._log_in(on_behalf_of)
            if status == 200:
                # At a random moment, so that not all clients come at once.
                lifetime = answer["expires_in"]
                renew_at = now + lifetime * random.uniform(0.5, 0.9)
                return Stored(answer["access_token"], renew_at, now + lifetime)
            now = time.monotonic()
            is_usable = old is not None and now < old.ends_at
            if status not in (0, 429, 503) or (failures >= 4 and not is_usable):
                raise Refused(answer["error_description"])
            sys.stderr.write(f"{answer['error_description']}\n")  # your log
            # Longer after each failure, but not the same for all.
            pause *= 2 ** min(failures, 6) * random.uniform(1, 1.5)
            failures += 1
            if old is not None and is_usable:
                return Stored(old.token, now + pause, old.ends_at, failures)
            time.sleep(pause)

    def _log_in(self, on_behalf_of: str) -> "tuple[int, dict[str, Any], float]":
        """Status (0: no answer), answer, and how many seconds to wait at least."""
        try:
            answer = requests.post(
                f"{AUTH_URL}/connect/token",
                data={"grant_type": "client_credentials", **self._credentials},
                headers={"onbehalfof": on_behalf_of} if on_behalf_of else {},
                timeout=10,
            )
            pause = int(answer.headers.get("Retry-After", 1))
            return answer.status_code, answer.json(), pause
        except requests.RequestException as error:
            return 0, {"error_description": str(error)}, 1


def main() -> None:
    """Ask twice which taxpayer the token represents; both calls use one token."""
    client = TokenClient(os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
    for _ in range(int(os.environ.get("CALLS", "2"))):
        for taxpayer in os.environ.get("ONBEHALFOF", "").split() or [""]:
            answer = client.get(f"{AUTH_URL}/api/v1/me", taxpayer)
            sys.stdout.write(f"{answer.text}\n")


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        sys.exit(str(refused))
