"""What a system user can log in with now: whether it has nothing, or room for one more."""

from datetime import datetime

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from taxpayers.credential_kind import by_kind
from taxpayers.models import MAX_LIVE_CREDENTIALS, Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.services.history import lock_for_update
from taxpayers.validation import ServiceError


def lock_live(credential: Credential, at: datetime) -> Credential:
    """It as it is now, locked. Raises ServiceError if it is no longer live."""
    row = lock_for_update(credential)
    if not row.is_live(at):
        raise ServiceError(_("{secret} has already ended.").format(secret=capfirst(row.label)))
    return row


def why_no_room(owner: SystemUser, at: datetime) -> str:
    """Why it gets no further one, naming the two that are live; empty if there is room."""
    live = live_of(owner, at)
    if len(live) < MAX_LIVE_CREDENTIALS:
        return ""
    listed = ", ".join(
        f"{s} ({_('until {moment}').format(moment=format_moment(s.expires_at))},"
        f" {describe_last_use(s)})"
        for s in live
    )
    if live[-1].last_used_at is None:
        one = live[-1]
        text = _(
            "{client_id} has two live {kinds}: {listed}."
            " The new one, {one}, is not used yet: the ERP system must change to it. If it was"
            " lost, revoke it."
        )
    else:
        one = min(live, key=lambda s: (s.last_used_at is not None, s.last_used_at, s.pk))
        text = _(
            "{client_id} has two live {kinds}: {listed}."
            " First revoke the one that is no longer in use, probably {one}."
        )
    kinds = _(owner.credential_kind.plural)
    return text.format(client_id=owner.client_id, kinds=kinds, listed=listed, one=one)


def why_none_valid(owner: SystemUser, at: datetime) -> str:
    """That it has no valid secret, or nothing else that it logs in with; empty if it has."""
    if live_of(owner, at):
        return ""
    texts = by_kind(
        _("It has no valid secret."), _("It has no valid key."), _("It has no valid certificate.")
    )
    return texts[owner.credential_kind]


def live_of(owner: SystemUser, at: datetime) -> list[Credential]:
    """What it can log in with, the oldest first; two at most."""
    rows = (row for row in owner.credentials.all() if row.is_live(at))
    return sorted(rows, key=lambda row: row.pk)


def describe_last_use(row: Credential) -> str:
    """When a login with it last succeeded, in words: shows which one is no longer needed."""
    if row.last_used_at is None:
        return _("never used")
    return _("last used {moment}").format(moment=format_moment(row.last_used_at))
