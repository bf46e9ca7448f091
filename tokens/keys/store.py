"""The table of signing keys: the first key, reading the ring, rotation, compromise (contract 2)."""

import logging
from datetime import datetime
from typing import Unpack

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from taxpayers.moments import format_moment
from taxpayers.operations import Operation, Reason
from taxpayers.services import history
from taxpayers.validation import ServiceError, refuse_if
from tokens import actions
from tokens.keys.encryption import decrypt, encrypt
from tokens.keys.ring import PUBLISHED_AHEAD, Key, KeyRing, PrivateKey, generate, public_jwk
from tokens.models import SigningKey

logger = logging.getLogger("tokens.keys")


def read_key_ring(at: datetime, known: KeyRing | None = None) -> KeyRing:
    """All keys, with the private parts of those that are published at this moment.

    Makes the first one if there is none. What `known` holds of a private key is not decrypted
    again, nor is one that could not be decrypted. Raises django.db.DatabaseError.
    """
    rows = _rows() or _create_first_key(at)
    decrypted = {key.kid: key.private_key for key in known.keys} if known else {}
    published = {key.kid for key in _public_ring(rows).published(at)}
    return KeyRing(
        tuple(
            _key(row, decrypted[row.kid] if row.kid in decrypted else _private_key(row))
            if row.kid in published
            else _key(row, None)
            for row in rows
        )
    )


def rotate(*, alg: str, **asked: Unpack[history.Asked]) -> Key:
    """Publishes a new key, which starts to sign PUBLISHED_AHEAD after this moment.

    `alg` is one of ALGORITHMS. Raises ServiceError while another new key waits to sign.
    """
    context = history.context_of(ROTATE_SIGNING_KEY, **asked)
    rows = _rows() or _create_first_key(context.at)
    waiting = _public_ring(rows).waiting(context.at)
    if waiting is not None:
        raise ServiceError(
            "The key {kid} is published already and waits until {moment} to sign."
            " Rotate again after that.",
            kid=waiting.kid,
            moment=format_moment(waiting.signs_from),
        )
    # The generation after the newest one read: if two rotate at once, the other insert fails.
    row = _new_row(
        rows[-1].generation + 1, alg, context.at, signs_from=context.at + PUBLISHED_AHEAD
    )
    return _insert(row, context, replaced=rows[-1])


@transaction.atomic
def stop_compromised_key(*, kid: str, alg: str, **asked: Unpack[history.Asked]) -> Key:
    """Ends this key now and for good, whether it signs, waits or only verifies; returns a new key.

    The new key signs from this moment on. Each process applies both when it next reads the ring.
    No token that the compromised key signed is accepted any more, also none that it signs until
    then. `alg` is that of the new key. Raises ServiceError for a key that is not published.
    """
    context = history.context_of(STOP_COMPROMISED_KEY, **asked)
    compromised = history.lock_for_update(_published_row(kid, context.at))
    refuse_if(why_not_stopped(compromised, context.at))  # another session was first
    newest = SigningKey.objects.latest("generation")
    row = _new_row(newest.generation + 1, alg, context.at, signs_from=context.at)
    key = _insert(row, context, replaced=compromised)
    # Its private part is not needed again.
    compromised.private_key = b""
    compromised.save(update_fields=["private_key"])
    history.update_and_record(compromised, context, compromised_at=context.at)
    return key


def signs_at_once(key: Key, at: datetime) -> bool:
    """Whether a new key signs already: another one is stopped, or no other can be decrypted."""
    return read_key_ring(at).signer(at).kid == key.kid


def why_not_stopped(row: SigningKey, at: datetime) -> str:
    """Why no token of this key is accepted any more; empty while one may be."""
    if row.compromised_at is not None:
        return _(
            "The key {kid} was stopped as compromised {moment}. Nothing more needs to be done."
        ).format(kid=row.kid, moment=format_moment(row.compromised_at))
    if row.kid in {key.kid for key in _public_ring(_rows()).published(at)}:
        return ""
    return _(
        "The key {kid} is no longer published, and no token that it signed is accepted."
        " Nothing more needs to be done."
    ).format(kid=row.kid)


ROTATE_SIGNING_KEY = Operation(
    actions.ROTATE_SIGNING_KEY,
    "Rotate the signing key",
    "A new key is published now. It starts to sign in ten minutes, when all APIs have read it."
    " The current key stays published until its last token has expired. No other step"
    " is needed.",
    Reason.OPTIONAL,
)
STOP_COMPROMISED_KEY = Operation(
    actions.ROTATE_SIGNING_KEY,
    "Stop: the key is compromised",
    "Only if others may have the key. It is stopped at once and for good, and a new key signs"
    " at once. Every token that it signed is refused: its clients log in again.",
    refusal=why_not_stopped,
    is_danger=True,
    own_name="stop_compromised_key",
)


def _published_row(kid: str, at: datetime) -> SigningKey:
    rows = _rows()
    published = [key.kid for key in _public_ring(rows).published(at)]
    row = next((row for row in rows if row.kid == kid), None)
    if row is None:
        raise ServiceError(
            "There is no signing key {kid}. Published now: {published}.",
            kid=kid,
            published=", ".join(published) or _("none"),
        )
    refuse_if(why_not_stopped(row, at))
    return row


def _insert(row: SigningKey, context: history.ChangeContext, *, replaced: SigningKey) -> Key:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            history.record_change(
                row,
                context,
                before={"kid": replaced.kid, "alg": replaced.alg},
                after={"kid": row.kid, "alg": row.alg, "signs_from": row.signs_from},
            )
    except IntegrityError:
        raise ServiceError("The signing key was rotated by another person just now.") from None
    return _key(row, None)


def _create_first_key(at: datetime) -> list[SigningKey]:
    row = _new_row(1, settings.SIGNING_ALGORITHM, at, signs_from=at)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        logger.info("another process made the first signing key")
    return _rows()


def _rows() -> list[SigningKey]:
    return list(SigningKey.objects.order_by("generation"))


def _new_row(generation: int, alg: str, at: datetime, *, signs_from: datetime) -> SigningKey:
    private_key = generate(alg)
    jwk = public_jwk(private_key, alg)
    return SigningKey(
        generation=generation,
        kid=jwk["kid"],
        alg=alg,
        public_jwk=jwk,
        private_key=encrypt(private_key),
        created_at=at,
        signs_from=signs_from,
    )


def _public_ring(rows: list[SigningKey]) -> KeyRing:
    return KeyRing(tuple(_key(row, None) for row in rows))


def _key(row: SigningKey, private_key: PrivateKey | None) -> Key:
    return Key(
        row.kid,
        row.alg,
        row.signs_from,
        row.public_jwk,
        private_key,
        is_compromised=row.compromised_at is not None,
    )


def _private_key(row: SigningKey) -> PrivateKey | None:
    try:
        return decrypt(bytes(row.private_key))  # PostgreSQL returns a memoryview
    except InvalidToken:
        # The key still verifies; the ring decides whether another one can sign.
        logger.exception(
            "a private key does not decrypt: see KEY_ENCRYPTION_KEYS", extra={"kid": row.kid}
        )
        return None
