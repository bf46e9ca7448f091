"""Changes of protected APIs, as those in `taxpayers.services` (contract 2 and 3)."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Unpack

from django.conf import settings
from django.utils.translation import gettext as _

from taxpayers import actions as registry
from taxpayers.credentials import (
    Credentials,
    Prefix,
    hash_secret,
    hint_of,
    new_client_id,
    new_client_secret,
)
from taxpayers.operations import ByReason, Operation, unneeded_if_active, unneeded_if_inactive
from taxpayers.services import history
from taxpayers.validation import (
    ServiceError,
    refuse_if,
    validate_end,
    validate_known,
    validate_name,
)
from tokens import actions
from tokens.models import ProtectedApi, ProtectedApiSecret

MAX_LIVE_SECRETS = 2


@dataclass(frozen=True, slots=True)
class IssuedApiSecret:
    """A new secret and whose it is. `credentials` has it in clear, to be shown once."""

    protected_api: ProtectedApi
    secret: ProtectedApiSecret
    credentials: Credentials


def introspection_endpoint() -> str:
    """The address at which an API asks whether a token is active."""
    return f"{settings.AUTH_URL}/connect/introspect"


REGISTER_PROTECTED_API = Operation(
    actions.REGISTER_PROTECTED_API,
    "Register a protected API",
    "The API can then ask whether a token is active. It cannot log in. Its secret is shown"
    " once. Have a safe way ready to give the secret to the operator of the API.",
)


@history.makes(REGISTER_PROTECTED_API)
def register_protected_api(
    *,
    name: str,
    audience: str,
    secret_expires_at: datetime | None = None,
    **asked: Unpack[history.Asked],
) -> IssuedApiSecret:
    """Register an API for one audience of the settings' scopes, with its first secret."""
    name, context = validate_name(name), history.context_of(REGISTER_PROTECTED_API, **asked)
    audiences = {scope["audience"] for scope in settings.SCOPES.values()}
    validate_known([audience], audiences, _("audience"))
    present = ProtectedApi.objects.filter(name=name).first()
    if present is not None:
        raise ServiceError(
            "There already is a protected API named {name}: {client_id}."
            " Rotate its secret, or choose another name.",
            name=name,
            client_id=present.client_id,
        )
    owner = ProtectedApi.objects.create(
        client_id=new_client_id(settings.ENVIRONMENT, Prefix.API_ID),
        name=name,
        audience=audience,
        created_at=context.at,
    )
    return _create_secret(owner, secret_expires_at, context, {"name": name, "audience": audience})


def why_no_room(owner: ProtectedApi, at: datetime) -> str:
    """Why it gets no further secret; empty if it can."""
    live = live_secrets(owner, at)
    if len(live) < MAX_LIVE_SECRETS:
        return ""
    return _("{client_id} has two live secrets: {listed}. First revoke one of them.").format(
        client_id=owner.client_id, listed=", ".join(map(str, live))
    )


ROTATE_API_SECRET = Operation(
    registry.ROTATE_SECRET,
    "Issue a new secret",
    "The new secret is shown once. A secret that is valid now keeps working, so that the API"
    " can change to the new one without a break.",
    refusal=why_no_room,
)


@history.makes(ROTATE_API_SECRET, "protected_api")
def issue_api_secret(
    *,
    protected_api: ProtectedApi,
    expires_at: datetime | None = None,
    retire_old_at: datetime | None = None,
    **asked: Unpack[history.Asked],
) -> IssuedApiSecret:
    """Issue a further secret, valid until `expires_at` (None: for settings.SECRET_LIFETIME).

    With `retire_old_at` the present ones end at that moment, unless they end before.
    """
    context = history.context_of(ROTATE_API_SECRET, **asked)
    owner = history.lock_for_update(protected_api)
    validate_end(retire_old_at, _("the old secret"), context.at)
    refuse_if(why_no_room(owner, context.at))
    if retire_old_at is not None:
        retiring = replace(context, action=registry.RETIRE_SECRET)
        for secret in live_secrets(owner, context.at):
            if retire_old_at < secret.expires_at:
                history.change_part(owner, secret, retiring, expires_at=retire_old_at)
    return _create_secret(owner, expires_at, context)


REVOKE_API_SECRET = Operation(
    registry.REVOKE_SECRET,
    "Revoke a secret",
    "The secret stops working now. This cannot be undone. What the API asks with it is refused.",
    refusal=lambda row, at: "" if live_secrets(row, at) else _("It has no valid secret."),
    is_danger=True,
)


@history.makes(REVOKE_API_SECRET, "secret")
def revoke_api_secret(
    *, secret: ProtectedApiSecret, **asked: Unpack[history.Asked]
) -> ProtectedApiSecret:
    """Revoke it now and for good; nothing happens if it was revoked before."""
    context = history.context_of(REVOKE_API_SECRET, **asked)
    owner = history.lock_for_update(secret.protected_api)
    row = history.lock_for_update(secret)
    if row.revoked_at is None:
        history.change_part(owner, row, context, revoked_at=context.at)
    return row


ACTIVATE_PROTECTED_API = ByReason(
    actions.ACTIVATE_PROTECTED_API,
    "Activate the protected API",
    "The API can ask again, with the secrets that are still valid.",
    unneeded=unneeded_if_active,
)
DEACTIVATE_PROTECTED_API = ByReason(
    actions.DEACTIVATE_PROTECTED_API,
    "Deactivate the protected API",
    "Everything that this API asks is refused from now on, so it cannot accept tokens any more."
    " Its secrets work again when it is activated.",
    is_danger=True,
    unneeded=unneeded_if_inactive,
)


@history.switches(ACTIVATE_PROTECTED_API, DEACTIVATE_PROTECTED_API, "protected_api")
def set_protected_api_active(
    *, protected_api: ProtectedApi, is_active: bool, **asked: Unpack[history.Asked]
) -> ProtectedApi:
    """Activate or deactivate it: all that it asks is refused then. Safe to repeat."""
    operation = ACTIVATE_PROTECTED_API if is_active else DEACTIVATE_PROTECTED_API
    context = history.context_of(operation, **asked)
    row = history.lock_for_update(protected_api)
    if not operation.unneeded(row):
        history.update_and_record(row, context, is_active=is_active)
    return row


def live_secrets(owner: ProtectedApi, at: datetime) -> list[ProtectedApiSecret]:
    """Those that authenticate it at this moment, the oldest first."""
    return [secret for secret in owner.credentials.order_by("pk") if secret.is_live(at)]


def _create_secret(
    owner: ProtectedApi,
    expires_at: datetime | None,
    context: history.ChangeContext,
    also: dict[str, Any] | None = None,
) -> IssuedApiSecret:
    clear = new_client_secret(settings.ENVIRONMENT, Prefix.API_SECRET)
    secret = ProtectedApiSecret.objects.create(
        protected_api=owner,
        lookup=hash_secret(clear),
        hint=hint_of(clear),
        created_at=context.at,
        expires_at=validate_end(expires_at, _("the secret"), context.at)
        or context.at + settings.SECRET_LIFETIME,
    )
    after = {**(also or {}), **history.named(secret), "secret_expires_at": secret.expires_at}
    history.record_change(owner, context, after=after)
    return IssuedApiSecret(owner, secret, Credentials(owner.client_id, clear))
