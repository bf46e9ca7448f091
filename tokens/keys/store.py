"""The table of signing keys: the first key, reading the ring, rotation (contract 2)."""

import logging
from datetime import datetime

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from taxpayers.moments import format_moment
from taxpayers.services.history import Action, Author, ChangeContext, record_change
from taxpayers.validation import ServiceError
from tokens.keys.encryption import decrypt, encrypt
from tokens.keys.ring import PUBLISHED_AHEAD, Key, KeyRing, PrivateKey, generate, public_jwk
from tokens.models import SigningKey

logger = logging.getLogger("tokens.keys")


def read_key_ring(at: datetime, known: KeyRing | None = None) -> KeyRing:
    """The keys that are published at this moment; makes the first one if there is none.

    A private key that `known` holds is not decrypted again. Raises django.db.DatabaseError.
    """
    rows = _rows() or _create_first_key(at)
    decrypted = {key.kid: key.private_key for key in known.keys} if known else {}
    published = {key.kid for key in _public_ring(rows).published(at)}
    return KeyRing(
        tuple(
            _key(row, decrypted.get(row.kid) or _private_key(row))
            for row in rows
            if row.kid in published
        )
    )


def rotate(*, alg: str, by: Author, at: datetime) -> Key:
    """Publishes a new key, which starts to sign PUBLISHED_AHEAD after this moment.

    `alg` is one of ALGORITHMS. Raises ServiceError while another new key waits to sign.
    """
    rows = _rows() or _create_first_key(at)
    waiting = _public_ring(rows).waiting(at)
    if waiting is not None:
        raise ServiceError(
            _(
                "The key {kid} is published already and waits until {moment} to sign."
                " Rotate again after that."
            ).format(kid=waiting.kid, moment=format_moment(waiting.signs_from))
        )
    # The generation after the newest one read: if two rotate at once, the other insert fails.
    row = _new_row(rows[-1].generation + 1, alg, at, signs_from=at + PUBLISHED_AHEAD)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            record_change(
                row,
                ChangeContext(Action.ROTATE_SIGNING_KEY, by, at),
                before={"kid": rows[-1].kid, "alg": rows[-1].alg},
                after={"kid": row.kid, "alg": row.alg, "signs_from": row.signs_from},
            )
    except IntegrityError:
        raise ServiceError(_("Somebody else has rotated the signing key just now.")) from None
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
    return Key(row.kid, row.alg, row.signs_from, row.public_jwk, private_key)


def _private_key(row: SigningKey) -> PrivateKey | None:
    try:
        return decrypt(bytes(row.private_key))  # PostgreSQL returns a memoryview
    except InvalidToken:
        # The key still verifies; the ring decides whether another one can sign.
        logger.exception(
            "a private key does not decrypt: see KEY_ENCRYPTION_KEYS", extra={"kid": row.kid}
        )
        return None
