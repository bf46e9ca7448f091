"""From where a secret or a key may be used: its allowed networks (contract 3)."""

from collections.abc import Collection
from typing import Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.facts.source_networks import MAX_NETWORKS, UnusableNetwork, read_networks
from taxpayers.models import Credential, SystemUser
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, change_part, context_of, makes
from taxpayers.services.live_credentials import lock_live, why_none_valid
from taxpayers.services.management_clients import lock_to_change
from taxpayers.validation import ServiceError

CHANGE_SECRET = Operation(
    actions.CHANGE_SECRET,
    marked("Set the networks from which a secret, key or certificate may be used"),
    marked(
        "Logins with it from any other address are refused from now on. Tokens that were already"
        " issued stay valid."
    ),
    refusal=why_none_valid,
)


@makes(CHANGE_SECRET, "credential")
def change_credential(
    *, credential: Credential, allowed_networks: Collection[str], **asked: Unpack[Asked]
) -> Credential:
    """Let logins with it come from these networks only; none: from anywhere.

    Raises ServiceError if it is no longer live.
    """
    context = context_of(CHANGE_SECRET, **asked)
    networks = validate_networks(allowed_networks)
    owner = lock_to_change(credential.system_user, context.by)
    row = lock_live(credential, context.at)
    if row.allowed_networks != networks:
        change_part(owner, row, context, allowed_networks=networks)
    return row


def networks_for_new(owner: SystemUser, given: Collection[str] | None) -> str:
    """Those of a new credential; None: those of the newest one that is not revoked.

    So that a change of credentials does not open what was limited. Raises ServiceError.
    """
    if given is not None:
        return validate_networks(given)
    newest = owner.credentials.filter(revoked_at__isnull=True).order_by("-pk").first()
    return newest.allowed_networks if newest else ""


def validate_networks(given: Collection[str]) -> str:
    """The networks as they are stored. Raises ServiceError, which names the right one."""
    try:
        networks = read_networks(given)
    except UnusableNetwork as unusable:
        text = _(unusable.fault).format(text=unusable.text, instead=unusable.instead)
        raise ServiceError(text, "invalid_network", "allowed_networks") from None
    if len(networks) > MAX_NETWORKS:
        raise ServiceError(
            _("Give {most} networks at most, not {given}.").format(
                most=MAX_NETWORKS, given=len(networks)
            ),
            "too_many",
            "allowed_networks",
        )
    return " ".join(networks)
