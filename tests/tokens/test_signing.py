"""Signing keys: one first key, encrypted at rest, rotated with overlap, cached (contract 2)."""

import os
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from cryptography.fernet import InvalidToken
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.db import DatabaseError, OperationalError, connection
from joserfc.jwk import JWKRegistry
from pytest_django.fixtures import Settings

from taxpayers import repeated
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change
from taxpayers.services import Author, ServiceError
from tests.support.at_once import at_once
from tests.support.outages import database_out_of_reach
from tests.support.queries import statements_sent
from tokens.access_tokens.issuing import issue_access_token
from tokens.keys import signer as signing, store as key_store
from tokens.keys.encryption import decrypt, encrypt
from tokens.keys.ring import (
    ALGORITHMS,
    LEEWAY,
    PUBLISHED_AHEAD,
    Key,
    KeyRing,
    NoUsableKey,
    generate,
    public_jwk,
)
from tokens.keys.signer import REFRESH_INTERVAL, current_key_ring, sign
from tokens.keys.store import read_key_ring, rotate
from tokens.lifetime import TOKEN_LIFETIME
from tokens.models import SigningKey

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
BY = Author("officer")
PRIVATE = generate("ES256")


def key(kid: str, signs_from: datetime, private_key: Any = PRIVATE) -> Key:
    return Key(kid, "ES256", signs_from, {}, private_key)


OLD, NEW = key("old", AT - timedelta(days=90)), key("new", AT + PUBLISHED_AHEAD)
RING = KeyRing((OLD, NEW))
SWITCH = NEW.signs_from
GONE = SWITCH + TOKEN_LIFETIME + LEEWAY


@pytest.mark.parametrize(
    ("ring", "at", "signer", "waiting", "published"),
    [
        pytest.param(KeyRing((OLD,)), AT, OLD, None, (OLD,), id="one key"),
        pytest.param(RING, AT, OLD, NEW, (OLD, NEW), id="the new one waits"),
        pytest.param(RING, SWITCH - MOMENT, OLD, NEW, (OLD, NEW), id="just before it signs"),
        pytest.param(RING, SWITCH, NEW, None, (OLD, NEW), id="it signs"),
        pytest.param(RING, GONE - MOMENT, NEW, None, (OLD, NEW), id="the old one retired"),
        pytest.param(RING, GONE, NEW, None, (NEW,), id="the old one gone"),
    ],
)
def test_rotation(
    ring: KeyRing, at: datetime, signer: Key, waiting: Key | None, published: tuple[Key, ...]
) -> None:
    assert ring.signer(at) == signer
    assert ring.waiting(at) == waiting
    assert ring.published(at) == published


def test_a_token_can_be_verified_as_long_as_it_lives_whatever_is_rotated() -> None:
    keys = [OLD]
    for n in range(3):
        keys.append(key(f"{n}", keys[-1].signs_from + timedelta(days=90, minutes=11 * n)))
    ring = KeyRing(tuple(keys))
    for start in (k.signs_from for k in keys[1:]):
        for minute in range(-120, 120):
            signed_at = start + timedelta(minutes=minute)
            signer = ring.signer(signed_at)
            for age in range(61):
                assert signer in ring.published(signed_at + timedelta(minutes=age))


def test_a_slow_clock_signs_with_the_first_key_before_its_start() -> None:
    later = key("later", SWITCH + timedelta(days=90))
    assert KeyRing((NEW,)).signer(AT) == KeyRing((NEW, later)).signer(AT) == NEW


def test_a_key_that_cannot_be_decrypted_verifies_but_does_not_sign() -> None:
    lost = key("lost", AT - timedelta(days=1), private_key=None)
    with pytest.raises(NoUsableKey):
        KeyRing((lost,)).signer(AT)
    with pytest.raises(NoUsableKey):
        sign({}, lost)
    assert KeyRing((lost, NEW)).signer(AT) == NEW  # at once: there is no other
    assert KeyRing((lost, NEW)).published(AT) == (lost, NEW)


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_a_public_key_is_a_jwk_without_its_private_part(alg: str) -> None:
    private_key = generate(alg)
    assert private_key.key_size == (256 if alg == "ES256" else 2048)
    jwk = public_jwk(private_key, alg)
    required = {"ES256": {"kty", "crv", "x", "y"}}.get(alg, {"kty", "n", "e"})
    assert set(jwk) == required | {"use", "alg", "kid"}
    assert (jwk["use"], jwk["alg"]) == ("sig", alg)
    assert JWKRegistry.import_key({**jwk}).thumbprint() == jwk["kid"]


def test_many_public_keys_have_coordinates_of_full_length() -> None:
    for _ in range(300):  # one in 256 begins with a zero byte
        jwk = public_jwk(generate("ES256"), "ES256")
        assert (len(jwk["x"]), len(jwk["y"])) == (43, 43)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "decision",
    [
        None,
        {},
        # Everything that a token is made of, but without a decision.
        SimpleNamespace(
            client_id="ci_test_1",
            subject=TaxpayerId("C2584563222"),
            actor=None,
            scopes=("InvoicingAPI",),
            permissions=(),
            at=AT,
        ),
    ],
)
def test_without_an_authorization_no_token_is_signed(decision: Any) -> None:
    with pytest.raises(TypeError, match="an Authorization only"):
        issue_access_token(decision, jti="1", status_index=0)


# --- At rest ------------------------------------------------------------------------------------
@pytest.mark.parametrize("alg", ALGORITHMS)
@pytest.mark.django_db
def test_no_part_of_a_private_key_is_in_the_table(alg: str, settings: Settings) -> None:
    settings.SIGNING_ALGORITHM = alg
    private_key = read_key_ring(AT).signer(AT).private_key
    assert private_key is not None
    clear = private_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    numbers: Any = private_key.private_numbers()
    secret = numbers.private_value if alg == "ES256" else numbers.p
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM signing_keys")
        (row,) = cursor.fetchall()
    stored = b"\n".join(
        bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
        for value in row
    )
    assert public_jwk(private_key, alg)["kid"].encode() in stored  # this row was searched
    for secret_bytes in (clear, secret.to_bytes(-(-secret.bit_length() // 8))):
        for form in (
            secret_bytes,
            secret_bytes.hex().encode(),
            jwt.utils.base64url_encode(secret_bytes),
        ):
            assert form not in stored


def test_the_newest_encryption_key_encrypts_and_all_decrypt(settings: Settings) -> None:
    old, new = "old-" + "o" * 40, "new-" + "n" * 40
    settings.KEY_ENCRYPTION_KEYS = [old]
    stored_before = encrypt(PRIVATE)
    settings.KEY_ENCRYPTION_KEYS = [new, old]
    assert numbers(decrypt(stored_before)) == numbers(PRIVATE)
    stored_after = encrypt(PRIVATE)
    settings.KEY_ENCRYPTION_KEYS = [new]
    assert numbers(decrypt(stored_after)) == numbers(PRIVATE)
    with pytest.raises(InvalidToken):
        decrypt(stored_before)


def numbers(private_key: Any) -> Any:
    return private_key.private_numbers()


@pytest.mark.django_db
def test_after_the_encryption_key_is_lost_a_rotation_fixes_it(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    lost = read_key_ring(AT).signer(AT)
    settings.KEY_ENCRYPTION_KEYS = ["another-" + "x" * 40]
    with pytest.raises(NoUsableKey, match="KEY_ENCRYPTION_KEYS"):
        read_key_ring(AT).signer(AT)
    assert lost.kid in {record.__dict__.get("kid") for record in caplog.records}
    new = rotate(alg="ES256", by=BY, at=AT)
    ring = read_key_ring(AT)
    assert ring.signer(AT) == new
    assert ring.published(AT) == (lost, new)
    caplog.clear()
    assert read_key_ring(AT, known=ring).signer(AT) == new
    assert caplog.records == []  # it is read every second, and logged once


# --- The first key ------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_workers_that_start_together_agree_on_one_first_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    generate_together(4, monkeypatch)
    caplog.set_level("INFO", "tokens.keys")
    rings = at_once(*[lambda: read_key_ring(AT)] * 4)
    assert SigningKey.objects.count() == 1
    assert {ring.signer(AT).kid for ring in rings} == {SigningKey.objects.get().kid}
    assert [r.message for r in caplog.records] == ["another process made the first signing key"] * 3


def generate_together(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many threads have read the table before any of them writes."""
    together = threading.Barrier(count, timeout=20)

    def wait_and_generate(alg: str) -> Any:
        together.wait()
        return generate(alg)

    monkeypatch.setattr(key_store, "generate", wait_and_generate)


# --- Rotation -----------------------------------------------------------------------------------
@pytest.mark.django_db
def test_a_rotated_key_is_published_now_signs_later_and_is_in_the_history() -> None:
    old = read_key_ring(AT).signer(AT)
    new = rotate(alg="RS256", by=BY, at=AT)
    assert new.signs_from == AT + PUBLISHED_AHEAD
    ring = read_key_ring(AT)
    assert ring.published(AT) == (old, new)
    assert ring.signer(AT) == old
    assert ring.signer(AT + PUBLISHED_AHEAD) == new
    change = Change.objects.get(action="rotate_signing_key")
    assert (change.by, change.at, change.label) == ("officer", AT, new.kid)
    assert change.before == {"kid": old.kid, "alg": "ES256"}
    assert change.after == {
        "kid": new.kid,
        "alg": "RS256",
        "signs_from": "2026-11-21T10:10:00+00:00",
    }


@pytest.mark.django_db
def test_a_second_rotation_is_refused_until_the_first_key_signs() -> None:
    new = rotate(alg="ES256", by=BY, at=AT)
    for at in (AT, new.signs_from - MOMENT):
        with pytest.raises(ServiceError, match=f"{new.kid} is published already and waits until"):
            rotate(alg="ES256", by=BY, at=at)
    rotate(alg="ES256", by=BY, at=new.signs_from)
    assert SigningKey.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_two_rotations_at_once_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    read_key_ring(AT)
    generate_together(2, monkeypatch)
    outcomes = at_once(*[lambda: rotate(alg="ES256", by=BY, at=AT)] * 2)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Key", "ServiceError"]
    assert SigningKey.objects.count() == 2
    assert Change.objects.filter(action="rotate_signing_key").count() == 1


# --- The cache of a worker ---------------------------------------------------------------------
@pytest.mark.django_db
def test_a_worker_sees_a_rotation_within_ten_seconds_and_reads_no_more_often() -> None:
    before = current_key_ring(AT)
    new = rotate(alg="ES256", by=BY, at=AT)
    with statements_sent() as sent:
        assert current_key_ring(AT + REFRESH_INTERVAL - MOMENT) is before
    assert not sent
    after = current_key_ring(AT + REFRESH_INTERVAL)
    assert after.published(AT) == (*before.keys, new)
    assert REFRESH_INTERVAL.total_seconds() == 10
    assert before.signer(AT).private_key is not None
    assert after.signer(AT).private_key is before.signer(AT).private_key, "it is parsed once"


@pytest.mark.django_db
def test_a_worker_keeps_its_keys_while_the_database_is_out_of_reach(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = current_key_ring(AT)
    with database_out_of_reach():
        assert current_key_ring(AT + REFRESH_INTERVAL) is known
        assert current_key_ring(AT + timedelta(hours=1)) is known
    message = "signing keys not read again: database out of reach"
    assert [(r.message, bool(r.exc_info)) for r in caplog.records] == [(message, True)] * 2
    new = rotate(alg="ES256", by=BY, at=AT)
    assert new in current_key_ring(AT + timedelta(hours=2)).keys


@pytest.mark.django_db
def test_while_one_thread_reads_the_others_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    known = current_key_ring(AT)
    reading, go_on = threading.Event(), threading.Event()

    def slowly(at: datetime, known: KeyRing | None = None) -> KeyRing:
        reading.set()
        assert go_on.wait(20)
        return KeyRing(())

    monkeypatch.setattr(signing, "read_key_ring", slowly)
    reader = threading.Thread(target=current_key_ring, args=[AT + REFRESH_INTERVAL])
    reader.start()
    assert reading.wait(20)
    assert current_key_ring(AT + REFRESH_INTERVAL) is known
    go_on.set()
    reader.join(20)
    assert current_key_ring(AT + REFRESH_INTERVAL) == KeyRing(())


@pytest.mark.django_db
def test_a_forked_worker_reads_for_itself() -> None:
    """Also if another thread of the parent held the lock at the fork, because it was reading."""
    current_key_ring(AT)
    parents = signing._cache
    with parents._lock:
        child = os.fork()
        if child == 0:
            is_new = signing._cache is not parents and not signing._cache._lock.locked()
            os._exit(0 if is_new else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_server_reads_its_keys_every_second_and_no_login_waits_for_that(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = OperationalError("gone")
    results: list[KeyRing | Exception] = [gone, gone, KeyRing((OLD,)), gone, RING]
    seen: list[object] = []
    threads: set[bool] = set()
    is_over = threading.Event()

    def read(at: datetime, known: KeyRing | None) -> KeyRing:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def sleep(seconds: float) -> None:
        threads.add(threading.current_thread().daemon)
        try:
            seen.append((seconds, cache.get(AT)))
        except DatabaseError as error:
            seen.append((seconds, str(error)))
        if not results:
            is_over.set()
            threading.Event().wait()  # it goes on as long as the server, so it must stop here

    monkeypatch.setattr(signing, "read_key_ring", read)
    monkeypatch.setattr(repeated, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(signing, "_cache", cache := signing.KeyRingCache())
    assert signing.keep_key_ring_fresh().wait(20), "it has tried once"
    assert is_over.wait(20)
    none = "the signing keys could not be read yet"
    old = KeyRing((OLD,))
    assert seen == [(1, none), (1, none), (1, old), (1, old), (1, RING)]
    assert threads == {True}, "the end of the server does not wait for it"
    # Once for each outage, with its cause.
    assert [record.getMessage() for record in caplog.records] == ["signing keys not read"] * 2
    assert {record.exc_info[1] for record in caplog.records if record.exc_info} == {gone}
