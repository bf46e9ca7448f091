"""Makes the clients of the sandbox: real states of the registry, by its services; safe to repeat.

What exists stays as it is. A state that lies in the past is made as of a moment in the past.
"""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from identity.sandbox.catalogue import (
    EXPIRED,
    NOT_YET_VALID,
    REPRESENTED,
    REVOKED,
    WITHOUT_PERMISSION,
)
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from taxpayers.services import (
    Author,
    IssuedSecret,
    bind_tokens,
    block_system_user,
    grant_permission,
    register_intermediary,
    register_taxpayer,
    revoke_permission,
    revoke_secret,
    set_taxpayer_active,
)
from taxpayers.services.sandbox.clients import move_sandbox_secret_end, register_sandbox_client
from tokens.sandbox.login import NEVER

SANDBOX = Author("sandbox")
_BEGAN, _ENDED = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC)
_REASON = "This is what the client of the sandbox shows"
_CODES = ("documents:submit", "documents:view")
_NOBODYS_NETWORK = "192.0.2.0/24"  # RFC 5737: for documentation
_OWN, _INACTIVE = "C9990000001", "C9990000002"
_AGENT, _ENDED_AGENT = "C9990000003", "C9990000004"


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
    """Let the secret that ends tomorrow do so, seen from this moment; False: it does, or is not."""
    return move_sandbox_secret_end(
        name=SandboxName.SECRET_ENDS_TOMORROW, last_moment=_end_of_tomorrow(at), by=SANDBOX, at=at
    )


def _end_of_tomorrow(at: datetime) -> datetime:
    tomorrow = timezone.localtime(at).date() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time(23, 59, 59)))


def _exists(name: SandboxName) -> bool:
    return SystemUser.objects.filter(client_id=CREDENTIALS[name].client_id).exists()


def _client(
    name: SandboxName, at: datetime, tin: str = _OWN, ends: datetime = NEVER, **facts: Any
) -> IssuedSecret:
    return register_sandbox_client(
        name=name, taxpayer=_taxpayer(tin), secret_expires_at=ends, by=SANDBOX, at=at, **facts
    )


def _taxpayer(tin: str) -> Taxpayer:
    present = Taxpayer.objects.filter(tin=tin, rob="").first()
    return present or register_taxpayer(
        taxpayer=TaxpayerId(tin), name=f"Sandbox: taxpayer {tin}", by=SANDBOX, at=_BEGAN
    )


def _role(tin: str, until: datetime | None = None) -> Intermediary:
    present = Intermediary.objects.filter(taxpayer__tin=tin, taxpayer__rob="").first()
    return present or register_intermediary(
        taxpayer=_taxpayer(tin), until=until, by=SANDBOX, at=_BEGAN
    )


def _granted(
    tin: str, at: datetime, begins: datetime | None = None, ends: datetime | None = None
) -> GrantedPermission:
    """The permission of this taxpayer for the agent, made at `at` if there is none."""
    taxpayer, agent = _taxpayer(tin), _role(_AGENT)
    present = GrantedPermission.objects.filter(taxpayer=taxpayer, intermediary=agent).first()
    return present or grant_permission(
        taxpayer=taxpayer,
        intermediary=agent,
        codes=_CODES,
        valid_from=begins,
        valid_until=ends,
        by=SANDBOX,
        at=at,
    )


def _make_agent(name: SandboxName, at: datetime, **facts: Any) -> None:
    """A client of the agent, to which the represented taxpayer has granted a permission."""
    _granted(REPRESENTED, at)
    _client(name, at, _AGENT, **facts)


def _make_one_a_minute(name: SandboxName, at: datetime) -> None:
    _client(name, at, logins_per_minute=1)


def _make_ending(name: SandboxName, at: datetime) -> None:
    _client(name, at, ends=_end_of_tomorrow(at))


def _make_expired_secret(name: SandboxName, at: datetime) -> None:
    _client(name, _BEGAN, ends=_ENDED)


def _make_revoked_secret(name: SandboxName, at: datetime) -> None:
    revoke_secret(secret=_client(name, at).secret, reason=_REASON, by=SANDBOX, at=at)


def _make_network(name: SandboxName, at: datetime) -> None:
    _client(name, at, allowed_networks=[_NOBODYS_NETWORK])


def _make_bound(name: SandboxName, at: datetime) -> None:
    user = _client(name, at).system_user
    bind_tokens(system_user=user, binding=TokenBinding.DPOP, reason=_REASON, by=SANDBOX, at=at)


def _make_blocked(name: SandboxName, at: datetime) -> None:
    user = _client(name, at).system_user
    block_system_user(system_user=user, reason=_REASON, by=SANDBOX, at=at)


def _make_expired(name: SandboxName, at: datetime) -> None:
    _client(name, _BEGAN, expires_at=_ENDED)


def _make_inactive(name: SandboxName, at: datetime) -> None:
    user = _client(name, at, _INACTIVE).system_user
    set_taxpayer_active(taxpayer=user.taxpayer, is_active=False, reason=_REASON, by=SANDBOX, at=at)


def _make_not_an_intermediary(name: SandboxName, at: datetime) -> None:
    _taxpayer(REPRESENTED)
    _client(name, at)


def _make_inactive_intermediary(name: SandboxName, at: datetime) -> None:
    _role(_ENDED_AGENT, until=_ENDED)
    _taxpayer(REPRESENTED)
    _client(name, at, _ENDED_AGENT)


def _make_limited_to_taxpayer(name: SandboxName, at: datetime) -> None:
    _make_agent(name, at, allowed_taxpayers=[TaxpayerId(REPRESENTED)])


def _make_limited_to_code(name: SandboxName, at: datetime) -> None:
    _make_agent(name, at, allowed_permissions=["documents:reject"])


def _make_without_permission(name: SandboxName, at: datetime) -> None:
    _taxpayer(WITHOUT_PERMISSION)
    _make_agent(name, at)


def _make_not_yet_valid(name: SandboxName, at: datetime) -> None:
    _granted(NOT_YET_VALID, at, begins=NEVER)
    _client(name, at, _AGENT)


def _make_expired_permission(name: SandboxName, at: datetime) -> None:
    _granted(EXPIRED, _BEGAN, ends=_ENDED)
    _client(name, at, _AGENT)


def _make_revoked_permission(name: SandboxName, at: datetime) -> None:
    revoke_permission(permission=_granted(REVOKED, at), reason=_REASON, by=SANDBOX, at=at)
    _client(name, at, _AGENT)


_MAKERS: dict[SandboxName, Callable[[SandboxName, datetime], Any]] = {
    SandboxName.WORKS: _client,
    SandboxName.TOKEN_FOR_A_MINUTE: _client,
    SandboxName.SYSTEM_WARNING: _client,
    SandboxName.RATE_LIMITED: _client,
    SandboxName.TEMPORARILY_UNAVAILABLE: _client,
    SandboxName.SERVER_ERROR: _client,
    SandboxName.ONE_LOGIN_A_MINUTE: _make_one_a_minute,
    SandboxName.SECRET_ENDS_TOMORROW: _make_ending,
    SandboxName.SECRET_EXPIRED: _make_expired_secret,
    SandboxName.SECRET_REVOKED: _make_revoked_secret,
    SandboxName.SOURCE_NETWORK_NOT_ALLOWED: _make_network,
    SandboxName.DPOP_PROOF_MISSING: _make_bound,
    SandboxName.SYSTEM_USER_BLOCKED: _make_blocked,
    SandboxName.SYSTEM_USER_EXPIRED: _make_expired,
    SandboxName.TAXPAYER_INACTIVE: _make_inactive,
    SandboxName.INTERMEDIARY: _make_agent,
    SandboxName.NOT_AN_INTERMEDIARY: _make_not_an_intermediary,
    SandboxName.INTERMEDIARY_INACTIVE: _make_inactive_intermediary,
    SandboxName.OWN_TAXPAYER_NOT_ALLOWED: _make_limited_to_taxpayer,
    SandboxName.TAXPAYER_NOT_ALLOWED: _make_limited_to_taxpayer,
    SandboxName.NO_PERMISSION: _make_without_permission,
    SandboxName.PERMISSION_NOT_YET_VALID: _make_not_yet_valid,
    SandboxName.PERMISSION_EXPIRED: _make_expired_permission,
    SandboxName.PERMISSION_REVOKED: _make_revoked_permission,
    SandboxName.PERMISSIONS_NOT_ALLOWED: _make_limited_to_code,
}
