"""Changes of the clients of the sandbox. Without ENVIRONMENT=test they raise ServiceError."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from taxpayers import actions
from taxpayers.models import RateLimitCounter, SystemUser, Taxpayer
from taxpayers.sandbox.clients import CREDENTIALS
from taxpayers.services.credential_changes import IssuedSecret, create_secret, store_last_end
from taxpayers.services.history import Author, ChangeContext, change_part, lock_for_update
from taxpayers.services.system_users import create_system_user
from taxpayers.validation import ServiceError


def register_sandbox_client(
    *,
    name: str,
    taxpayer: Taxpayer,
    secret_expires_at: datetime,
    allowed_networks: Collection[str] = (),
    by: Author,
    at: datetime,
    **facts: Any,
) -> IssuedSecret:
    """As `register_system_user`, with its public id and secret. Only inside a transaction.

    Its tokens may have to be bound to a certificate even where MTLS_URL is not set: it is refused.
    """
    _only_in_test()
    public = CREDENTIALS[name]
    context, owner, stored = create_system_user(
        taxpayer=taxpayer,
        name=f"Sandbox: {name}",
        public_id=public.client_id,
        reason="a client of the sandbox",
        by=by,
        at=at,
        **{"logins_per_minute": 0} | facts,
    )
    secret = public.client_secret
    return create_secret(owner, secret_expires_at, context, allowed_networks, stored, secret)


@transaction.atomic
def move_sandbox_secret_end(*, name: str, last_moment: datetime, by: Author, at: datetime) -> None:
    """Let its secret end at that moment, earlier or later: no other secret ever ends later."""
    _only_in_test()
    owner = lock_for_update(SystemUser.objects.get(client_id=CREDENTIALS[name].client_id))
    secret = lock_for_update(owner.credentials.get())
    if secret.expires_at != last_moment:
        context = ChangeContext(actions.RETIRE_SECRET, by, at)
        change_part(owner, secret, context, expires_at=last_moment)
        store_last_end(owner)


def reset_sandbox_counter(*, name: str) -> None:
    """Forget the logins of this client's present minute. Not in the history: no login is either."""
    _only_in_test()
    counter = RateLimitCounter.objects.filter(
        system_user__client_id=CREDENTIALS[name].client_id, used__gt=0
    )
    counter.update(used=0)  # nothing is written where there is nothing to forget


def _only_in_test() -> None:
    if settings.ENVIRONMENT != "test":
        raise ServiceError("There is a sandbox with ENVIRONMENT=test only.")
