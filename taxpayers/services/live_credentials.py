"""What a system user can log in with now, and from where (contract 3): the allowed networks."""

from collections.abc import Collection
from datetime import datetime
from typing import Unpack

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.credential_kind import by_kind
from taxpayers.facts.source_networks import MAX_NETWORKS, UnusableNetwork, read_networks
from taxpayers.models import MAX_LIVE_CREDENTIALS, Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, change_part, context_of, lock_for_update, makes
from taxpayers.services.management_clients import lock_to_change
from taxpayers.validation import ServiceError


def lock_live(credential: Credential, at: datetime) -> Credential:
    """It as it is now, locked. Raises ServiceError if it is no longer live."""
    row = lock_for_update(credential)
    if not row.is_live(at):
        raise ServiceError("{secret} has already ended.", secret=capfirst(row.label))
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


CHANGE_SECRET = Operation(
    actions.CHANGE_SECRET,
    "Set the networks from which a secret, key or certificate may be used",
    "Logins with it from any other address are refused from now on. Tokens that were already"
    " issued stay valid.",
    refusal=why_none_valid,
)


@makes(CHANGE_SECRET, "credential")
def change_credential(
    *, credential: Credential, allowed_networks: Collection[str], **asked: Unpack[Asked]
) -> Credential:
    """Let logins with it come from these networks only; none: from anywhere. It must be live."""
    context = context_of(CHANGE_SECRET, **asked)
    networks = validate_networks(allowed_networks)
    owner = lock_to_change(credential.system_user, context.by)
    row = lock_live(credential, context.at)
    if row.allowed_networks != networks:
        change_part(owner, row, context, allowed_networks=networks)
    return row


def networks_for_new(owner: SystemUser, given: Collection[str] | None) -> str:
    """Those of a new credential; None: those of the newest one, so that a limit stays."""
    if given is not None:
        return validate_networks(given)
    newest = owner.credentials.filter(revoked_at__isnull=True).order_by("-pk").first()
    return newest.allowed_networks if newest else ""


def validate_networks(given: Collection[str]) -> str:
    """The networks as they are stored. Raises ServiceError, which names the right one."""
    try:
        networks = read_networks(given)
    except UnusableNetwork as unusable:
        raise ServiceError(
            unusable.fault,
            "invalid_network",
            "allowed_networks",
            text=unusable.text,
            instead=unusable.instead,
        ) from None
    if len(networks) > MAX_NETWORKS:
        raise ServiceError(
            "Give {most} networks at most, not {given}.",
            "too_many",
            "allowed_networks",
            most=MAX_NETWORKS,
            given=len(networks),
        )
    return " ".join(networks)
