"""Changes of endpoints: keyword-only, atomic, recorded in the history."""

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Unpack

from cryptography.fernet import InvalidToken
from django.conf import settings
from uuid_utils.compat import uuid7

from identity.webhooks import actions
from identity.webhooks.destination import NotAllowed, check_host, read_url
from identity.webhooks.event_types import EVENT_TYPES, TEST
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.owners import confirm_owner, was_stopped
from identity.webhooks.publishing import publish_all_changes, sample_of
from identity.webhooks.secret_storage import encrypt, encrypt_anew, new_secret
from taxpayers import operations
from taxpayers.actions import Action
from taxpayers.duties import Duty
from taxpayers.services import history
from taxpayers.validation import ServiceError, validate_known, validate_text

MOST_ENDPOINTS = 20
FORMER_SECRET_SIGNS = timedelta(hours=24)
_LONGEST_DESCRIPTION = 255


@dataclass(frozen=True, slots=True)
class IssuedWebhookSecret:
    """An endpoint and its new secret in clear, to be shown once."""

    endpoint: WebhookEndpoint
    secret: str = field(repr=False)


REGISTER_WEBHOOK = operations.Operation(
    actions.REGISTER_WEBHOOK,
    "Register a webhook",
    "It gets what is committed from now on. Its secret is shown once.",
    operations.Reason.OPTIONAL,
)


@history.makes(REGISTER_WEBHOOK)
def register_webhook(
    *,
    url: str,
    event_types: Collection[str] = (),
    description: str = "",
    **asked: Unpack[history.Asked],
) -> IssuedWebhookSecret:
    """Register an endpoint, which gets what is committed from now on; no types: all of them.

    It gets nothing without the system user that registers it. Raises ServiceError.
    """
    context = history.context_of(REGISTER_WEBHOOK, **asked)
    _check_room()
    publish_all_changes(context.at)  # what was before is not for it
    secret = new_secret()
    row = WebhookEndpoint(
        url=_validate_url(url),
        description=_validate_description(description),
        event_types=_validate_types(event_types),
        client_id=context.by.client_id,
        created_at=context.at,
        secret=encrypt(secret),
    )
    confirm_owner(row, context.at)
    row.save(force_insert=True)
    after = {"url": row.address, "event_types": row.event_types}
    history.record_change(row, context, after=after)
    return IssuedWebhookSecret(row, secret)


CHANGE_WEBHOOK = operations.Operation(
    actions.CHANGE_WEBHOOK,
    "Change the webhook",
    "Its address, its types or its description, from the next message on.",
)


@history.makes(CHANGE_WEBHOOK, "endpoint")
def change_webhook(
    *,
    endpoint: WebhookEndpoint,
    url: str | None = None,
    event_types: Collection[str] | None = None,
    description: str | None = None,
    **asked: Unpack[history.Asked],
) -> WebhookEndpoint:
    """Change what is given; nothing happens if it is so already. Raises ServiceError."""
    context = history.context_of(CHANGE_WEBHOOK, **asked)
    row = history.lock_for_update(endpoint)
    given: dict[str, Any] = {
        "url": None if url is None else _validate_url(url),
        "event_types": None if event_types is None else _validate_types(event_types),
        "description": None if description is None else _validate_description(description),
    }
    new = {name for name, value in given.items() if value not in (None, getattr(row, name))}
    before = _shown(row, new)
    for name in new:
        setattr(row, name, given[name])
    if new:
        row.save(update_fields=new)
        history.record_change(row, context, before=before, after=_shown(row, new))
    return row


ROTATE_WEBHOOK_SECRET = operations.Operation(
    actions.ROTATE_WEBHOOK_SECRET,
    "Issue a new secret of the webhook",
    "It is shown once. For a day messages are signed with the present one, too.",
)


@history.makes(ROTATE_WEBHOOK_SECRET, "endpoint")
def rotate_webhook_secret(
    *, endpoint: WebhookEndpoint, **asked: Unpack[history.Asked]
) -> IssuedWebhookSecret:
    """Issue a new secret; for a day the present one signs as well, unless it cannot be read."""
    context = history.context_of(ROTATE_WEBHOOK_SECRET, **asked)
    row, secret = history.lock_for_update(endpoint), new_secret()
    row.former_secret, row.former_secret_until = "", None
    with contextlib.suppress(InvalidToken):
        row.former_secret = encrypt_anew(row.secret)
        row.former_secret_until = context.at + FORMER_SECRET_SIGNS
    row.secret = encrypt(secret)
    row.save(update_fields=["secret", "former_secret", "former_secret_until"])
    history.record_change(row, context, after={"former_secret_until": row.former_secret_until})
    return IssuedWebhookSecret(row, secret)


ENABLE_WEBHOOK = operations.ByReason(
    actions.ENABLE_WEBHOOK,
    "Send to the webhook again",
    "It gets what waits for it, and what changes from now on.",
    unneeded=operations.unneeded_if_active,
)
DISABLE_WEBHOOK = operations.ByReason(
    actions.DISABLE_WEBHOOK,
    "Send nothing to the webhook",
    "What waits for it is sent when it is enabled again.",
    unneeded=operations.unneeded_if_inactive,
)


@history.switches(ENABLE_WEBHOOK, DISABLE_WEBHOOK, "endpoint")
def set_webhook_active(
    *, endpoint: WebhookEndpoint, is_active: bool, **asked: Unpack[history.Asked]
) -> WebhookEndpoint:
    """Send to it, or not. What waits is sent once it is enabled again; events of the pause are not.

    Safe to repeat. Raises ServiceError if its owner may not have a webhook now.
    """
    operation = ENABLE_WEBHOOK if is_active else DISABLE_WEBHOOK
    context = history.context_of(operation, **asked)
    if is_active:
        _check_room(besides=endpoint.pk)
        publish_all_changes(context.at)  # what happened in between is not for it
    row = history.lock_for_update(endpoint)
    if is_active and was_stopped(row, confirm_owner(row, context.at)):
        row.is_active = False  # though no deliverer has noticed yet
    if history.update_and_record(row, context, is_active=is_active) and is_active:
        row.paused_until, row.failures = None, 0
        row.save(update_fields=["paused_until", "failures"])
    return row


DELETE_WEBHOOK = operations.Operation(
    actions.DELETE_WEBHOOK,
    "Delete the webhook",
    "It gets nothing more, and what waits for it is dropped.",
)


@history.makes(DELETE_WEBHOOK, "endpoint")
def delete_webhook(*, endpoint: WebhookEndpoint, **asked: Unpack[history.Asked]) -> WebhookEndpoint:
    """Delete it with what waits for it; its history stays."""
    context = history.context_of(DELETE_WEBHOOK, **asked)
    row = history.lock_for_update(endpoint)
    before = {"url": row.address, "event_types": row.event_types}
    history.record_change(row, context, before=before, after={})
    WebhookEndpoint.objects.filter(pk=row.pk).delete()
    return row


# --- What the history does not show ---------------------------------------------------------------


def _unrecorded(name: str, title: str, effect: str) -> operations.Operation:
    action = Action("webhookendpoint", Duty.WEBHOOKS, name, "")
    return operations.Operation(action, title, effect, operations.Reason.NONE)


SEND_TEST = _unrecorded(
    "send_test_webhook",
    "Send a webhook.test event",
    "Only to this webhook, whatever types it wants. Or a sample of each of the types given, with"
    " sample: true in its data.",
)
RESEND = _unrecorded(
    "resend_webhook",
    "Send this message now",
    "What waits for a later attempt is sent at once; what was delivered or given up once more.",
)
REPEAT_FAILED = _unrecorded(
    "repeat_webhook",
    "Send again what was given up",
    "What failed after ten attempts is tried anew.",
)


@history.makes(SEND_TEST, "endpoint")
def send_test(
    *, endpoint: WebhookEndpoint, event_types: Collection[str] = (), **asked: Unpack[history.Asked]
) -> list[WebhookDelivery]:
    """Send `webhook.test`, or a sample of each of these types, to this endpoint only.

    Returns the new deliveries. Raises ServiceError if it is disabled.
    """
    _check_active(endpoint)
    at = asked["at"]
    return [
        WebhookDelivery.objects.create(
            event=WebhookEvent.objects.create(type=name, body=sample_of(name, at), created_at=at),
            endpoint=endpoint,
            record=f"test {uuid7()}",
            created_at=at,
            due_at=at,
        )
        for name in _validate_types(event_types) or [TEST]
    ]


@history.makes(RESEND, "delivery")
def resend(*, delivery: WebhookDelivery, **asked: Unpack[history.Asked]) -> WebhookDelivery:
    """Send it now, also if it is finished. Raises ServiceError if its endpoint is disabled."""
    _check_active(delivery.endpoint)
    row = history.lock_for_update(delivery)
    row.state, row.attempts = WebhookDelivery.PENDING, 0
    row.due_at, row.finished_at = asked["at"], None
    row.save(update_fields=["state", "attempts", "due_at", "finished_at"])
    WebhookEndpoint.objects.filter(pk=row.endpoint_id).update(paused_until=None)
    return row


@history.makes(REPEAT_FAILED, "endpoint")
def repeat_failed(
    *, endpoint: WebhookEndpoint, since: datetime | None = None, **asked: Unpack[history.Asked]
) -> int:
    """Try again what was given up (all, or events from `since` on); how many deliveries."""
    failed = endpoint.deliveries.filter(state=WebhookDelivery.FAILED)
    if since is not None:
        failed = failed.filter(created_at__gte=since)
    pending = WebhookDelivery.PENDING
    return failed.update(state=pending, attempts=0, due_at=asked["at"], finished_at=None)


def _check_active(endpoint: WebhookEndpoint) -> None:
    if not endpoint.is_active:
        raise ServiceError("The webhook is disabled. Enable it first.")


def _check_room(besides: int = 0) -> None:
    """Raises ServiceError if no further one may be enabled: each gets every event."""
    others = WebhookEndpoint.objects.filter(is_active=True).exclude(pk=besides)
    if others.count() >= MOST_ENDPOINTS:
        raise ServiceError(
            f"There are {MOST_ENDPOINTS} enabled webhooks. First disable one that is not needed, or"
            " ask the operators to do so."
        )


def _shown(row: WebhookEndpoint, names: Collection[str]) -> dict[str, Any]:
    """For the history, which others read: of the URL its address."""
    return {name: row.address if name == "url" else getattr(row, name) for name in sorted(names)}


def _validate_url(url: str) -> str:
    try:
        networks = settings.WEBHOOK_ALLOWED_NETWORKS
        check_host(read_url(url, networks), networks)
    except NotAllowed as fault:
        raise ServiceError(f"The URL cannot be used: {fault}.", "invalid_url", "url") from None
    return url


def _validate_types(given: Collection[str]) -> list[str]:
    return validate_known(given, EVENT_TYPES, "event type", "event_types") if given else []


def _validate_description(text: str) -> str:
    if not text.strip():
        return ""
    return validate_text(text, "a description", _LONGEST_DESCRIPTION, "description")
