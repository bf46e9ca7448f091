"""The keys of the issuer: found, stored for a while, fetched again, and never too often."""

import gzip
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from einvoicing_tokens import TokenVerifier, Unavailable
from einvoicing_tokens.issuer import http_client
from einvoicing_tokens.issuer.keys import FRESH_SECONDS, PAUSE_SECONDS, USABLE_SECONDS
from tests.packages.issuer import JWKS, METADATA, Issuer, is_accepted, new_key

HOUR = 3600


def assert_unavailable(verifier: TokenVerifier, token: str) -> None:
    with pytest.raises(Unavailable) as refused:
        verifier.verify(token)
    assert (refused.value.status, refused.value.error) == (503, "temporarily_unavailable")
    assert refused.value.headers["Retry-After"] == "5"
    assert "WWW-Authenticate" not in refused.value.headers


def test_keys_are_found_through_the_metadata_and_fetched_once_a_minute(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    for seconds, fetched in ((0, 1), (FRESH_SECONDS - 1, 1), (FRESH_SECONDS, 2)):
        issuer.clock.seconds = seconds
        for _ in range(10):
            verifier.verify(issuer.token())
        assert issuer.requests[JWKS] == fetched
    assert issuer.requests[METADATA] == 1
    assert (FRESH_SECONDS, PAUSE_SECONDS) == (60, 5), "as docs/api-teams.md says"


def test_a_new_key_is_accepted_at_once(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    old = issuer.token()
    verifier.verify(old)
    issuer.clock.seconds = PAUSE_SECONDS
    issuer.keys.append(new_key())
    assert is_accepted(verifier, issuer.token())
    assert is_accepted(verifier, old)
    assert issuer.requests[JWKS] == 2


def test_random_key_ids_cost_one_request_in_each_pause(issuer: Issuer) -> None:
    verifier, strangers = issuer.verifier(), [new_key() for _ in range(3)]
    for seconds, fetched in ((0, 1), (PAUSE_SECONDS - 0.1, 1), (PAUSE_SECONDS, 2)):
        issuer.clock.seconds = seconds
        for number in range(30):
            assert not is_accepted(verifier, issuer.token(key=strangers[number % 3]))
            assert is_accepted(verifier, issuer.token())
        assert issuer.requests[JWKS] == fetched


@pytest.mark.parametrize("new_is_used", [False, True])
def test_a_key_that_is_no_longer_published_is_refused_within_a_minute(
    issuer: Issuer, new_is_used: bool
) -> None:
    """At once, where a token of the new key has come."""
    verifier, token = issuer.verifier(), issuer.token()
    verifier.verify(token)
    issuer.keys = [new_key()]
    issuer.clock.seconds = PAUSE_SECONDS if new_is_used else FRESH_SECONDS - 0.1
    assert not new_is_used or is_accepted(verifier, issuer.token())
    assert is_accepted(verifier, token) is not new_is_used
    issuer.clock.seconds = FRESH_SECONDS
    assert not is_accepted(verifier, token)


def test_before_the_first_fetch_nobody_is_let_in(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    issuer.is_away = True
    assert_unavailable(verifier, issuer.token())
    issuer.is_away = False
    assert_unavailable(verifier, issuer.token())
    assert issuer.requests[METADATA] == 1, "an outage is no reason to ask more often"
    issuer.clock.seconds = PAUSE_SECONDS
    assert is_accepted(verifier, issuer.token())


def test_while_the_service_is_away_its_last_keys_work_for_an_hour(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    verifier.verify(issuer.token())
    issuer.is_away = True
    for seconds in (FRESH_SECONDS, USABLE_SECONDS / 2, USABLE_SECONDS - 1):
        issuer.clock.seconds = seconds
        assert is_accepted(verifier, issuer.token())
    issuer.clock.seconds = USABLE_SECONDS
    assert USABLE_SECONDS == HOUR
    assert_unavailable(verifier, issuer.token())
    issuer.is_away = False
    issuer.clock.seconds += PAUSE_SECONDS
    assert is_accepted(verifier, issuer.token())


def test_an_unknown_key_while_the_service_is_away_is_503(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    verifier.verify(issuer.token())
    issuer.is_away = True
    issuer.clock.seconds = PAUSE_SECONDS
    for _ in range(3):
        assert_unavailable(verifier, issuer.token(key=new_key()))
        assert is_accepted(verifier, issuer.token()), "known keys still work"
    assert issuer.requests[JWKS] == 2


def test_one_thread_fetches_for_all(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.token()
    issuer.may_answer.clear()
    began = threading.Barrier(17)

    def verify() -> str:
        began.wait(30)
        return verifier.verify(token).jti

    with ThreadPoolExecutor(16) as threads:
        verified = [threads.submit(verify) for _ in range(16)]
        began.wait(30)
        issuer.may_answer.set()
        assert [done.result(30) for done in verified] == ["a-jti"] * 16
    assert issuer.requests == {METADATA: 1, JWKS: 1}


@pytest.mark.parametrize(
    "changes",
    [
        *({"issuer": issuer} for issuer in ("https://other.example.org", None)),
        *({"jwks_uri": uri} for uri in (None, 5, "/.well-known/jwks.json")),
        {"jwks_uri": "{other}/.well-known/jwks.json"},
        {"jwks_uri": "{url}@{host}/.well-known/jwks.json"},
    ],
    ids=str,
)
def test_metadata_of_another_issuer_are_not_followed(
    issuer: Issuer, other_issuer: Issuer, changes: dict[str, Any]
) -> None:
    other_issuer.keys = issuer.keys  # they would do, if they were fetched
    metadata = json.loads(issuer.body(METADATA)) | {
        name: issuer.in_place(value, other_issuer) for name, value in changes.items()
    }
    issuer.answers[METADATA] = json.dumps(metadata).encode()
    assert_unavailable(issuer.verifier(), issuer.token())
    assert set(issuer.requests) == {METADATA}
    assert not other_issuer.requests


@pytest.mark.parametrize("path", [METADATA, JWKS])
def test_a_redirect_is_not_followed(issuer: Issuer, other_issuer: Issuer, path: str) -> None:
    other_issuer.keys = issuer.keys
    other_issuer.answers[METADATA] = issuer.body(METADATA)
    issuer.headers[path] = {"Location": other_issuer.url + path}
    assert_unavailable(issuer.verifier(), issuer.token())
    assert not other_issuer.requests


@pytest.mark.parametrize("path", [METADATA, JWKS])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b"{}", b"[" * 100_000])
def test_an_answer_that_makes_no_sense_is_503(issuer: Issuer, path: str, body: bytes) -> None:
    issuer.answers[path] = body
    assert_unavailable(issuer.verifier(), issuer.token())


@pytest.mark.parametrize("path", [METADATA, JWKS])
def test_nothing_is_unpacked(issuer: Issuer, path: str) -> None:
    """A few bytes can unpack to more than fits into memory."""
    issuer.answers[path] = gzip.compress(issuer.body(path))
    issuer.headers[path] = {"Content-Encoding": "gzip"}
    assert_unavailable(issuer.verifier(), issuer.token())


@pytest.mark.parametrize(
    "other",
    [
        *("text", {}, {"kty": "XX", "alg": "ES256", "kid": "unknown"}),
        {"kty": "EC", "alg": "ES256", "kid": "broken", "crv": "P-256", "x": "A", "y": "A"},
        {"kty": "EC", "alg": "ES256", "kid": "cut", "crv": "P-256"},
        {"kty": "OKP", "alg": "EdDSA", "kid": "new kind", "crv": "Ed25519", "x": "A"},
    ],
    ids=str,
)
def test_a_key_that_cannot_be_read_does_not_stop_the_others(issuer: Issuer, other: Any) -> None:
    issuer.answers[JWKS] = json.dumps({"keys": [other, issuer.signer.public_jwk]}).encode()
    assert is_accepted(issuer.verifier(), issuer.token())


@pytest.mark.parametrize("changes", [{"use": "enc"}, {"alg": None}, {"alg": "ES384"}, {"kid": 5}])
def test_a_key_for_another_purpose_verifies_nothing(
    issuer: Issuer, changes: dict[str, Any]
) -> None:
    keys = [new_key().public_jwk, issuer.signer.public_jwk | changes]
    issuer.answers[JWKS] = json.dumps({"keys": keys}).encode()
    assert not is_accepted(issuer.verifier(), issuer.token())


def test_an_answer_without_an_end_is_cut_off(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1000)
    issuer.answers[METADATA] = issuer.body(METADATA) + b" " * 1000
    assert_unavailable(issuer.verifier(), issuer.token())


def test_an_answer_that_comes_too_slowly_is_cut_off(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "_CHUNK_BYTES", 10)
    each_second = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(http_client, "time", each_second)  # a second passes for each piece
    assert_unavailable(issuer.verifier(), issuer.token())
    assert set(issuer.requests) == {METADATA}


def test_a_service_that_hangs_is_503_in_time(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http_client.TIMEOUT_SECONDS <= 3
    monkeypatch.setattr(http_client, "TIMEOUT_SECONDS", 0.2)
    issuer.may_answer.clear()
    assert_unavailable(issuer.verifier(), issuer.token())
