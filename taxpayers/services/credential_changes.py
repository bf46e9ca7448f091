"""Changes of credentials: two live ones at most, a secret is shown once (contract 3)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Unpack

from django.conf import settings
from django.db.models import Max
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.credential_kind import by_kind
from taxpayers.credentials import Credentials, hash_secret, hint_of, new_client_secret
from taxpayers.models import SLOTS, Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.operations import Operation
from taxpayers.services import history
from taxpayers.services.live_credentials import (
    live_of,
    lock_live,
    networks_for_new,
    why_no_room,
    why_none_valid,
)
from taxpayers.services.management_clients import lock_to_change, lock_to_stop
from taxpayers.validation import ServiceError, refuse_if, validate_end


@dataclass(frozen=True, slots=True)
class IssuedSecret:
    """A new secret and whose it is. `credentials` has it in clear, to be shown once."""

    system_user: SystemUser
    secret: Credential
    credentials: Credentials


class LastLiveCredential(ServiceError):
    """Without it its system user could not log in any more."""


def why_no_secret(owner: SystemUser, at: datetime) -> str:
    """Why no secret can be issued for it; empty if one can."""
    if owner.uses_key:
        return _(
            "{client_id} logs in with a private key and has no secret. Add a key, or change how it"
            " logs in."
        ).format(client_id=owner.client_id)
    if owner.uses_certificate:
        return _(
            "{client_id} logs in with a certificate and has no secret. Register another one, or"
            " change how it logs in."
        ).format(client_id=owner.client_id)
    return why_no_room(owner, at)


ROTATE_SECRET = Operation(
    actions.ROTATE_SECRET,
    "Issue a new secret",
    "The new secret is shown once. A secret that is valid now keeps working, so that the ERP"
    " system can change to the new one without a break.",
    refusal=why_no_secret,
)


@history.makes(ROTATE_SECRET, "system_user")
def issue_secret(
    *,
    system_user: SystemUser,
    expires_at: datetime | None = None,
    retire_old_at: datetime | None = None,
    allowed_networks: Collection[str] | None = None,
    **asked: Unpack[history.Asked],
) -> IssuedSecret:
    """Issue a new secret beside the present one.

    It is valid until `expires_at`; None: for settings.SECRET_LIFETIME. It may be used from
    `allowed_networks`; None: from where the present one may, and none at all: from anywhere.
    With `retire_old_at` the present ones end at that moment, unless they end before. Raises
    ServiceError if two secrets are live, or if it logs in with a private key.
    """
    context = history.context_of(ROTATE_SECRET, **asked)
    owner = lock_to_change(system_user, context.by)
    refuse_if(why_no_secret(owner, context.at))
    validate_end(retire_old_at, _("the old secret"), context.at, "retire_old_at")
    if retire_old_at is not None:
        retiring = replace(context, action=actions.RETIRE_SECRET)
        for row in owner.credentials.filter(slot__isnull=False, expires_at__gt=retire_old_at):
            history.change_part(owner, row, retiring, expires_at=retire_old_at)
    return create_secret(owner, expires_at, context, allowed_networks)


def create_secret(
    owner: SystemUser,
    expires_at: datetime | None,
    context: history.ChangeContext,
    allowed_networks: Collection[str] | None,
    also: Mapping[str, Any] | None = None,
    public_secret: str = "",
) -> IssuedSecret:
    """Create a secret, as `store_new`; `public_secret` is that of a client of the sandbox."""
    clear = public_secret or new_client_secret(settings.ENVIRONMENT)
    row = Credential(lookup=hash_secret(clear), hint=hint_of(clear))
    store_new(owner, [row], expires_at, context, allowed_networks, also)
    return IssuedSecret(owner, row, Credentials(owner.client_id, clear))


def store_new(
    owner: SystemUser,
    rows: Sequence[Credential],
    expires_at: datetime | None,
    context: history.ChangeContext,
    allowed_networks: Collection[str] | None = None,
    also: Mapping[str, Any] | None = None,
) -> None:
    """Store these, which say only what logins find them by, in free slots of their owner.

    Valid until `expires_at` (None: for settings.SECRET_LIFETIME), from `allowed_networks` as for
    `issue_secret`. In the history they are with their owner, where people look for them, and
    `also` is beside each.
    """
    networks = networks_for_new(owner, allowed_networks)
    labels = by_kind(_("the secret"), _("the key"), _("the certificate"))
    for row in rows:
        _check_name(owner, row, context.at)
        fields = ("credentials_expire_at", "expires_at")
        end = validate_end(expires_at, labels[row.kind], context.at, *fields)
        row.system_user, row.slot = owner, _free_slot(owner, context.at)
        row.created_at, row.allowed_networks = context.at, networks
        row.expires_at = end or context.at + settings.SECRET_LIFETIME
        row.save(force_insert=True)
        store_last_end(owner)
        name = {"kid": row.kid, "certificate_name": row.certificate_name}
        after = {**(also or {}), **{key: value for key, value in name.items() if value}}
        after |= {**history.named(row), "secret_expires_at": row.expires_at}
        if networks:
            after["allowed_networks"] = networks
        history.record_change(owner, context, after=after)


def _check_name(owner: SystemUser, row: Credential, at: datetime) -> None:
    """Raises ServiceError if its owner has a key or a certificate of this name.

    An authority gives a renewed certificate the same name. So one that has ended is found no more;
    its row stays, and so do the ends of the tokens that were issued with it.
    """
    former = owner.credentials.filter(lookup=row.lookup).first() if row.name else None
    if former is None:
        return
    if row.is_certificate:
        if former.is_live(at):
            raise ServiceError("The name {name} is there already.", name=row.name)
        former.lookup = f"{former.lookup}#{former.pk}"
        former.save(update_fields=["lookup"])
        return
    if former.revoked_at is None:
        text = _("The key {kid} is there already.").format(kid=row.kid)
    else:
        text = _(
            "A key with the kid {kid} was removed {moment} and stays removed. Give the new key"
            " another kid."
        ).format(kid=row.kid, moment=format_moment(former.revoked_at))
    raise ServiceError(text, "already_registered", "keys")


RETIRE_SECRET = Operation(
    actions.RETIRE_SECRET,
    "Set an earlier last day of a secret, key or certificate",
    "It stops working after this day, or earlier if it expires earlier.",
    refusal=why_none_valid,
)


@history.makes(RETIRE_SECRET, "credential")
def retire_credential(
    *, credential: Credential, last_moment: datetime, **asked: Unpack[history.Asked]
) -> Credential:
    """Let it end earlier, unless it ends by then anyway. Raises ServiceError if it is not live."""
    context = history.context_of(RETIRE_SECRET, **asked)
    validate_end(last_moment, credential.label, context.at, "last_moment")
    owner = lock_to_stop(credential.system_user, context.by)
    row = lock_live(credential, context.at)
    if last_moment < row.expires_at:
        history.change_part(owner, row, context, expires_at=last_moment)
        store_last_end(owner)
    return row


REVOKE_SECRET = Operation(
    actions.REVOKE_SECRET,
    "Revoke a secret, key or certificate",
    "It stops working now. This cannot be undone. An ERP system that still uses it can no"
    " longer log in.",
    refusal=why_none_valid,
    is_danger=True,
)


@history.makes(REVOKE_SECRET, "credential")
def revoke_credential(
    *, credential: Credential, spare_last: bool = False, **asked: Unpack[history.Asked]
) -> Credential:
    """Revoke it now and for good; safe to repeat. `spare_last`: LastLiveCredential for the last."""
    context = history.context_of(REVOKE_SECRET, **asked)
    owner = lock_to_stop(credential.system_user, context.by)
    row = history.lock_for_update(credential)
    if row.revoked_at is None:
        if spare_last and not any(other != row for other in live_of(owner, context.at)):
            raise LastLiveCredential(f"The {row.kind} {row} is the last live one.")
        row.slot = None
        history.change_part(owner, row, context, also=["slot"], revoked_at=context.at)
        store_last_end(owner)
    return row


def store_last_end(owner: SystemUser) -> None:
    """Store when its last credential ends, after a change of one. Only with the row locked."""
    unrevoked = owner.credentials.filter(revoked_at__isnull=True)
    owner.last_secret_ends_at = unrevoked.aggregate(last=Max("expires_at"))["last"]
    owner.save(update_fields=["last_secret_ends_at"])


def _free_slot(owner: SystemUser, at: datetime) -> int:
    """A slot for one more. Raises ServiceError, which names the two that are live."""
    occupied = {row.slot: row for row in owner.credentials.filter(slot__isnull=False)}
    for slot in SLOTS:
        row = occupied.get(slot)
        if row is None:
            return slot
        if not row.is_live(at):
            row.slot = None
            row.save(update_fields=["slot"])
            return slot
    raise ServiceError(why_no_room(owner, at))


REVOKE_SECRETS = Operation(
    actions.REVOKE_SECRET,
    "Revoke secrets, keys and certificates",
    refusal=why_none_valid,
    is_danger=True,
    own_name="revoke_secrets",
)
