"""A webhook ends with its owner: the system user that registered it. Those of operators do not end.

While the owner would get no token for the management API, nothing is sent. What only time has ended
(a last day, a credential) goes on when it is renewed. After a block, or the deactivation of the
taxpayer, it does not: a stolen token may have registered it, so the owner looks at it first.
"""

from datetime import datetime

from django.db.models import Max, Q

from identity.webhooks import actions
from identity.webhooks.models import WebhookEndpoint
from taxpayers import actions as registry
from taxpayers.duties import Duty, duties_of
from taxpayers.models import Change, SystemUser, Taxpayer
from taxpayers.standing.loaded_rows import standing_of_row, with_credentials
from taxpayers.validation import ServiceError


def owner_of(endpoint: WebhookEndpoint) -> SystemUser | None:
    """The owner of a webhook that a client registered; None: it was deleted."""
    return with_credentials(SystemUser.objects.filter(client_id=endpoint.client_id)).first()


def is_well(owner: SystemUser | None, at: datetime) -> bool:
    """Whether it would get a token now with which it may manage webhooks."""
    return (
        owner is not None
        and Duty.WEBHOOKS in duties_of(owner.scopes.split())
        and standing_of_row(owner, at).gets_token
    )


def was_stopped(endpoint: WebhookEndpoint, owner: SystemUser | None) -> bool:
    """Whether the owner was blocked, or its taxpayer deactivated, since it confirmed the webhook.

    By the history: a block counts that was lifted before anything was to be sent.
    """
    if owner is None:
        return False
    blocked = _made(registry.BLOCK_SYSTEM_USER, owner.pk)
    deactivated = _made(registry.DEACTIVATE_TAXPAYER, owner.taxpayer_id)
    registered = _made(actions.REGISTER_WEBHOOK, endpoint.pk)
    enabled = _made(actions.ENABLE_WEBHOOK, endpoint.pk)
    confirmed = Change.objects.filter(registered | enabled)
    last = confirmed.aggregate(last=Max("pk"))["last"] or 0
    return Change.objects.filter(blocked | deactivated, pk__gt=last).exists()


def _made(action: registry.Action, key: int) -> Q:
    return Q(object_type=action.of, object_id=str(key), action=action.name)


def confirm_owner(endpoint: WebhookEndpoint, at: datetime) -> SystemUser | None:
    """The owner, which cannot be blocked until the end of the transaction; None: operators.

    So the history tells which came first. Raises ServiceError if the owner is not well.
    """
    if not endpoint.client_id:
        return None
    owners = SystemUser.objects.filter(client_id=endpoint.client_id)
    list(Taxpayer.objects.filter(system_users__in=owners).select_for_update(no_key=True))
    list(owners.select_for_update(no_key=True))
    owner = owner_of(endpoint)
    if not is_well(owner, at):
        raise ServiceError(
            f"{endpoint.client_id}, which registered the webhook, may not use the management API"
            " now: it is blocked or expired, has no valid credential or no scope for it, or its"
            " taxpayer is inactive. Correct that first."
        )
    return owner
