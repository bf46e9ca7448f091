"""The public keys of system users that log in with a private key; two live ones at most."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Unpack

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.client_keys import ClientKey, KeyFault, UnusableKey, key_name, read_client_keys
from taxpayers.credentials import hint_of
from taxpayers.models import MAX_LIVE_CREDENTIALS, Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.operations import Operation
from taxpayers.services.credential_changes import free_slot, store_new
from taxpayers.services.history import Asked, ChangeContext, context_of, makes
from taxpayers.services.limits.source_networks import networks_for_new
from taxpayers.services.live_credentials import why_no_room
from taxpayers.services.management_clients import lock_to_change
from taxpayers.validation import ServiceError

_FAULTS = {
    KeyFault.UNREADABLE: gettext_lazy(
        "This is no public key. Give a JWK, a JWK Set or a PEM file that begins with"
        " -----BEGIN PUBLIC KEY-----."
    ),
    KeyFault.NONE: gettext_lazy("There is no key in it. Give at least one public key."),
    KeyFault.PRIVATE: gettext_lazy(
        "This is a PRIVATE or secret key, and nothing was stored. Who has it can log in: the ERP"
        " system must make a new pair and send its public key only."
    ),
    KeyFault.KIND: gettext_lazy(
        "A key must be EC on P-256 (for ES256), RSA (for PS256) or Ed25519 (for EdDSA)."
    ),
    KeyFault.RSA_LENGTH: gettext_lazy("An RSA key must have 2048 to 4096 bits."),
    KeyFault.RSA_EXPONENT: gettext_lazy("The public exponent of an RSA key must be 65537."),
    KeyFault.ALGORITHM: gettext_lazy(
        "alg must be ES256 for an EC key, PS256 for an RSA key and EdDSA for Ed25519, or be left"
        " out."
    ),
    KeyFault.USE: gettext_lazy("The key is not for signatures: use must be sig, or be left out."),
    KeyFault.KID: gettext_lazy("kid must have 1 to 64 printable characters without blanks."),
    KeyFault.REPEATED: gettext_lazy("Two keys have the same kid. Give each key a different kid."),
}


def why_no_key(owner: SystemUser, at: datetime) -> str:
    """Why no key can be registered for it; empty if one can."""
    if owner.uses_key:
        return why_no_room(owner, at)
    return _(
        "{client_id} does not log in with a private key. First change how it logs in to"
        " private_key_jwt."
    ).format(client_id=owner.client_id)


REGISTER_CLIENT_KEY = Operation(
    actions.REGISTER_CLIENT_KEY,
    marked("Register a new key"),
    marked(
        "A key that is valid now keeps working, so that the ERP system can change to the new one"
        " without a break. Then revoke the old one."
    ),
    refusal=why_no_key,
)


@makes(REGISTER_CLIENT_KEY, "system_user")
def register_client_keys(
    *,
    system_user: SystemUser,
    keys: str,
    expires_at: datetime | None = None,
    allowed_networks: Collection[str] | None = None,
    **asked: Unpack[Asked],
) -> list[Credential]:
    """Register these public keys (JWK, JWK Set or PEM) beside the present one.

    They are valid until `expires_at`; None: for settings.SECRET_LIFETIME. `allowed_networks` as for
    `issue_secret`. Raises ServiceError if there would be more than two live ones, or if the system
    user logs in with a secret.
    """
    context = context_of(REGISTER_CLIENT_KEY, **asked)
    owner = lock_to_change(system_user, context.by)
    if refusal := why_no_key(owner, context.at):
        raise ServiceError(refusal)
    validated = validate_keys(keys)
    return create_keys(owner, validated, expires_at, context, allowed_networks=allowed_networks)


def validate_keys(text: str) -> Sequence[ClientKey]:
    """The keys in the text. Raises ServiceError, which never shows any of it."""
    try:
        keys = read_client_keys(text)
    except UnusableKey as unusable:
        raise ServiceError(str(_FAULTS[unusable.fault]), "invalid_key", "keys") from None
    if len(keys) > MAX_LIVE_CREDENTIALS:
        raise ServiceError(
            _("Give two keys at most: the present one, and the next one."), "too_many", "keys"
        )
    return keys


def create_keys(
    owner: SystemUser,
    keys: Sequence[ClientKey],
    expires_at: datetime | None,
    context: ChangeContext,
    also: dict[str, Any] | None = None,
    allowed_networks: Collection[str] | None = None,
) -> list[Credential]:
    """Create them in free slots; `also` is stored in the history beside each."""
    networks = networks_for_new(owner, allowed_networks)
    return [_create(owner, key, expires_at, networks, context, also or {}) for key in keys]


def _create(
    owner: SystemUser,
    key: ClientKey,
    expires_at: datetime | None,
    allowed_networks: str,
    context: ChangeContext,
    also: dict[str, Any],
) -> Credential:
    name = key_name(key.kid)
    former = owner.credentials.filter(lookup=name).first()
    if former is not None:
        raise ServiceError(_already_there(key.kid, former), "already_registered", "keys")
    row = Credential(
        system_user=owner,
        slot=free_slot(owner, context.at),
        lookup=name,
        hint=hint_of(key.kid),
        public_jwk=key.jwk,
        allowed_networks=allowed_networks,
    )
    return store_new(row, expires_at, _("the key"), context, {**also, "kid": key.kid})


def _already_there(kid: str, row: Credential) -> str:
    if row.revoked_at is None:
        return _("The key {kid} is there already.").format(kid=kid)
    return _(
        "A key with the kid {kid} was removed {moment} and stays removed. Give the new key another"
        " kid."
    ).format(kid=kid, moment=format_moment(row.revoked_at))
