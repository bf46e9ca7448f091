"""Makes the clients of the sandbox: real states of the registry, by its services; safe to repeat.

What exists stays as it is. A state that lies in the past is made as of a moment in the past.
"""

import logging
import threading
from collections.abc import Callable
from datetime import datetime, time, timedelta
from functools import partial
from time import sleep
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from identity.sandbox.catalogue import (
    EXPIRED,
    NOT_YET_VALID,
    REPRESENTED,
    REVOKED,
    WITHOUT_PERMISSION,
)
from identity.sandbox.records import (
    AGENT,
    BEGAN,
    ENDED,
    ENDED_AGENT,
    INACTIVE,
    PROOF,
    REASON,
    SANDBOX,
    UNUSED_NETWORK,
    new_client,
    permission_of,
    role_of,
    taxpayer_of,
)
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, SystemUser
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from taxpayers.services import (
    block_system_user,
    revoke_credential,
    revoke_permission,
    set_taxpayer_active,
)
from taxpayers.services.sandbox.clients import move_sandbox_secret_end
from taxpayers.shut_down import answered_within
from tokens.operations.sandbox import NEVER


@transaction.atomic
def make_sandbox(at: datetime) -> list[SandboxName]:
    """Creates what is missing and returns the names of the new clients.

    Raises ServiceError unless ENVIRONMENT is test.
    """
    missing = [name for name in SandboxName if not _exists(name)]
    for name in missing:
        _MAKERS[name](name, at)
    renew_ending_secret(at)
    return missing


def renew_ending_secret(at: datetime) -> bool:
    """Let the secret that ends tomorrow do so, seen from this moment; False: it does, or is not.

    Nothing is locked unless it must be changed.
    """
    name, last_moment = SandboxName.SECRET_ENDS_TOMORROW, _end_of_tomorrow(at)
    present = Credential.objects.filter(system_user__client_id=CREDENTIALS[name].client_id)
    if not present.exclude(expires_at=last_moment).exists():
        return False
    return move_sandbox_secret_end(name=name, last_moment=last_moment, by=SANDBOX, at=at)


def _end_of_tomorrow(at: datetime) -> datetime:
    tomorrow = timezone.localtime(at).date() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time(23, 59, 59)))


def _exists(name: SandboxName) -> bool:
    return SystemUser.objects.filter(client_id=CREDENTIALS[name].client_id).exists()


def _make_agent(name: SandboxName, at: datetime, **facts: Any) -> None:
    """A client of the agent, to which the represented taxpayer has granted a permission."""
    permission_of(REPRESENTED, at)
    new_client(name, at, AGENT, **facts)


def _make_ending(name: SandboxName, at: datetime) -> None:
    new_client(name, at, ends=_end_of_tomorrow(at))


def _make_in_the_past(name: SandboxName, _at: datetime, **facts: Any) -> None:
    new_client(name, BEGAN, **facts)


def _make_revoked_secret(name: SandboxName, at: datetime) -> None:
    revoke_credential(credential=new_client(name, at).secret, reason=REASON, by=SANDBOX, at=at)


def _make_blocked(name: SandboxName, at: datetime) -> None:
    user = new_client(name, at).system_user
    block_system_user(system_user=user, reason=REASON, by=SANDBOX, at=at)


def _make_inactive(name: SandboxName, at: datetime) -> None:
    user = new_client(name, at, INACTIVE).system_user
    set_taxpayer_active(taxpayer=user.taxpayer, is_active=False, reason=REASON, by=SANDBOX, at=at)


def _make_not_an_intermediary(name: SandboxName, at: datetime) -> None:
    taxpayer_of(REPRESENTED)
    new_client(name, at)


def _make_inactive_intermediary(name: SandboxName, at: datetime) -> None:
    role_of(ENDED_AGENT, until=ENDED)
    taxpayer_of(REPRESENTED)
    new_client(name, at, ENDED_AGENT)


def _make_without_permission(name: SandboxName, at: datetime) -> None:
    taxpayer_of(WITHOUT_PERMISSION)
    _make_agent(name, at)


def _make_not_yet_valid(name: SandboxName, at: datetime) -> None:
    permission_of(NOT_YET_VALID, at, begins=NEVER)
    new_client(name, at, AGENT)


def _make_expired_permission(name: SandboxName, at: datetime) -> None:
    permission_of(EXPIRED, BEGAN, ends=ENDED)
    new_client(name, at, AGENT)


def _make_revoked_permission(name: SandboxName, at: datetime) -> None:
    revoke_permission(
        permission=permission_of(REVOKED, at), evidence=PROOF, reason=REASON, by=SANDBOX, at=at
    )
    new_client(name, at, AGENT)


_limited_to_taxpayer = partial(_make_agent, allowed_taxpayers=[TaxpayerId(REPRESENTED)])
_MAKERS: dict[SandboxName, Callable[[SandboxName, datetime], Any]] = {
    SandboxName.WORKS: new_client,
    SandboxName.TOKEN_FOR_A_MINUTE: new_client,
    SandboxName.SYSTEM_WARNING: new_client,
    SandboxName.RATE_LIMITED: new_client,
    SandboxName.TEMPORARILY_UNAVAILABLE: new_client,
    SandboxName.SERVER_ERROR: new_client,
    SandboxName.ONE_LOGIN_A_MINUTE: partial(new_client, logins_per_minute=1),
    SandboxName.SECRET_ENDS_TOMORROW: _make_ending,
    SandboxName.SECRET_EXPIRED: partial(_make_in_the_past, ends=ENDED),
    SandboxName.SECRET_REVOKED: _make_revoked_secret,
    SandboxName.SOURCE_NETWORK_NOT_ALLOWED: partial(new_client, allowed_networks=[UNUSED_NETWORK]),
    SandboxName.DPOP_PROOF_MISSING: partial(new_client, token_binding=TokenBinding.DPOP),
    SandboxName.CERTIFICATE_MISSING: partial(new_client, token_binding=TokenBinding.TLS),
    SandboxName.SYSTEM_USER_BLOCKED: _make_blocked,
    SandboxName.SYSTEM_USER_EXPIRED: partial(_make_in_the_past, expires_at=ENDED),
    SandboxName.TAXPAYER_INACTIVE: _make_inactive,
    SandboxName.INTERMEDIARY: _make_agent,
    SandboxName.NOT_AN_INTERMEDIARY: _make_not_an_intermediary,
    SandboxName.INTERMEDIARY_INACTIVE: _make_inactive_intermediary,
    SandboxName.OWN_TAXPAYER_NOT_ALLOWED: _limited_to_taxpayer,
    SandboxName.TAXPAYER_NOT_ALLOWED: _limited_to_taxpayer,
    SandboxName.NO_PERMISSION: _make_without_permission,
    SandboxName.PERMISSION_NOT_YET_VALID: _make_not_yet_valid,
    SandboxName.PERMISSION_EXPIRED: _make_expired_permission,
    SandboxName.PERMISSION_REVOKED: _make_revoked_permission,
    SandboxName.PERMISSIONS_NOT_ALLOWED: partial(
        _make_agent, allowed_permissions=["documents:reject"]
    ),
}


logger = logging.getLogger("identity.sandbox")

_LOOK_EVERY_SECONDS = 1800.0
_ANSWER_SECONDS = 10.0


def keep_sandbox_current() -> None:
    """From now on; of several processes one makes the change, and the others find it made."""
    threading.Thread(target=_renew_again, daemon=True).start()


def _renew_again() -> None:
    while True:
        renew_once()
        connection.close()  # it would be idle until the next time
        sleep(_LOOK_EVERY_SECONDS)


def renew_once() -> None:
    """Never raises: without a database the next time will do."""
    try:
        with answered_within(_ANSWER_SECONDS):
            renew_ending_secret(timezone.now())
    except Exception:
        logger.warning("the sandbox was not renewed", exc_info=True)
