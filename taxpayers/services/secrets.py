"""Changes of client secrets: two live ones at most, shown once, kept as hashes (contract 3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from taxpayers.credentials import Credentials, hash_secret, hint_of, new_client_secret
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.services.history import Action, Author, ChangeContext, locked, record_change
from taxpayers.validation import ServiceError, format_moment, validate_end, validate_reason

_SLOTS = (1, 2)


@dataclass(frozen=True, slots=True)
class Issued:
    """A new secret and whose it is. `credentials` has it in clear, to be shown once."""

    system_user: SystemUser
    secret: ClientSecret
    credentials: Credentials


@transaction.atomic
def issue_secret(
    *,
    system_user: SystemUser,
    expires_at: datetime | None = None,
    retire_old_at: datetime | None = None,
    by: Author,
    at: datetime,
) -> Issued:
    """A further secret, valid until `expires_at` (None: for settings.SECRET_LIFETIME).

    `retire_old_at` ends the present ones at that moment unless they end before. Raises ServiceError
    if two secrets are live.
    """
    owner = locked(system_user)
    validate_end(retire_old_at, _("the old secret"), at)
    slot = _free_slot(owner, at)
    if retire_old_at is not None:
        _retire_live(owner, retire_old_at, ChangeContext(Action.RETIRE_SECRET, by, at))
    return create_secret(owner, slot, expires_at, ChangeContext(Action.ROTATE_SECRET, by, at))


def create_secret(
    owner: SystemUser,
    slot: int,
    expires_at: datetime | None,
    deed: ChangeContext,
    also: dict[str, Any] | None = None,
) -> Issued:
    """A new secret in a free slot; `also` is what else the history shall say of the deed."""
    clear = new_client_secret(settings.ENVIRONMENT)
    secret = ClientSecret.objects.create(
        system_user=owner,
        slot=slot,
        hashed=hash_secret(clear),
        hint=hint_of(clear),
        created_at=deed.at,
        expires_at=validate_end(expires_at, _("the secret"), deed.at)
        or deed.at + settings.SECRET_LIFETIME,
    )
    # A secret's history is its system user's: there staff look for it.
    after = {**(also or {}), "secret": str(secret), "secret_expires_at": secret.expires_at}
    record_change(owner, deed, after=after)
    return Issued(owner, secret, Credentials(owner.client_id, clear))


@transaction.atomic
def retire_secret(
    *, secret: ClientSecret, last_moment: datetime, reason: str, by: Author, at: datetime
) -> ClientSecret:
    """Let a live secret end earlier; nothing happens if it ends by then anyway.

    Raises ServiceError if it is not live any more.
    """
    deed = ChangeContext(Action.RETIRE_SECRET, by, at, validate_reason(reason))
    validate_end(last_moment, _("the secret"), at)
    owner = locked(secret.system_user)
    row = locked(secret)
    if not row.is_live(at):
        raise ServiceError(_("The secret {secret} has ended already.").format(secret=row))
    if last_moment < row.expires_at:
        _retire(owner, row, last_moment, deed)
    return row


@transaction.atomic
def revoke_secret(*, secret: ClientSecret, reason: str, by: Author, at: datetime) -> ClientSecret:
    """End it now and for good; nothing happens if it was revoked before."""
    deed = ChangeContext(Action.REVOKE_SECRET, by, at, validate_reason(reason))
    owner = locked(secret.system_user)
    row = locked(secret)
    if row.revoked_at is None:
        row.revoked_at, row.slot = at, None
        row.save(update_fields=["revoked_at", "slot"])
        before = {"secret": str(row), "secret_revoked_at": None}
        record_change(owner, deed, before=before, after={**before, "secret_revoked_at": at})
    return row


def _free_slot(owner: SystemUser, at: datetime) -> int:
    occupied = {secret.slot: secret for secret in owner.secrets.filter(slot__isnull=False)}
    for slot in _SLOTS:
        secret = occupied.get(slot)
        if secret is None:
            return slot
        if not secret.is_live(at):
            secret.slot = None
            secret.save(update_fields=["slot"])
            return slot
    listed = ", ".join(
        f"{s} ({_('until {moment}').format(moment=format_moment(s.expires_at))}, {use_of(s)})"
        for s in occupied.values()
    )
    # One that was never used is missed by nobody; else the one that was used longest ago.
    idle = min(occupied.values(), key=lambda s: (s.last_used_at is not None, s.last_used_at, s.pk))
    raise ServiceError(
        _(
            "{client_id} has two live secrets: {listed}."
            " Revoke the one that is no longer in use first, probably {idle}."
        ).format(client_id=owner.client_id, listed=listed, idle=idle)
    )


def use_of(secret: ClientSecret) -> str:
    """When a login with it succeeded last, in words: tells the one that nobody would miss."""
    if secret.last_used_at is None:
        return _("never used")
    return _("last used {moment}").format(moment=format_moment(secret.last_used_at))


def _retire_live(owner: SystemUser, last_moment: datetime, deed: ChangeContext) -> None:
    for secret in owner.secrets.filter(slot__isnull=False, expires_at__gt=last_moment):
        _retire(owner, secret, last_moment, deed)


def _retire(
    owner: SystemUser, secret: ClientSecret, last_moment: datetime, deed: ChangeContext
) -> None:
    before = {"secret": str(secret), "secret_expires_at": secret.expires_at}
    secret.expires_at = last_moment
    secret.save(update_fields=["expires_at"])
    record_change(owner, deed, before=before, after={**before, "secret_expires_at": last_moment})
