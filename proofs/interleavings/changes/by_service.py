"""Changes of the registry by its services, as staff and operators make them.

Triggers note both alike, so a column that a service only sets is changed in `by_sql`.
"""

import json
from copy import copy

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES
from taxpayers import services
from taxpayers.models import (
    DEFAULT_SCOPE,
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionRequest,
    SystemUser,
    Taxpayer,
)
from taxpayers.services.connections import ask_connection
from taxpayers.services.decisions import (
    approve_connection,
    approve_permission_request,
    decline_connection,
)
from taxpayers.services.permission_requests import ask_permission, withdraw_permission_request
from tests.client_auth.key_erp import new_pair

BY_SERVICE = Changes()
_MOST_CLIENTS, _MOST_PERMISSIONS = 8, 14
_LATEST = 3  # connections that are decided


@BY_SERVICE.add()
def block(context: Context) -> None:
    user = context.one(SystemUser.objects.filter(blocked_at=None))
    services.block_system_user(system_user=user, **context.why)


@BY_SERVICE.add(weight=12)
def unblock(context: Context) -> None:
    user = context.one(SystemUser.objects.exclude(blocked_at=None))
    services.unblock_system_user(system_user=user, **context.why)


@BY_SERVICE.add(weight=2)
def limit_client(context: Context) -> None:
    """To some permissions, to some taxpayers that it may have asked for, or to both."""
    rng = context.rng
    user = context.one(SystemUser.objects.exclude(taxpayer__intermediary=None))
    others = [row for row in context.registry.taxpayers if row.id != user.taxpayer_id]
    services.limit_system_user(
        system_user=user,
        permissions=rng.sample(CODES, rng.choice((0, 1, 2))),
        taxpayers=[other.identifier for other in rng.sample(others, rng.choice((0, 2, 3)))],
        only_on_behalf=rng.choice((False, True)),
        **context.why,
    )


@BY_SERVICE.add(is_counter_changed=True)
def register_client(context: Context) -> None:
    context.choose(range(_MOST_CLIENTS - len(context.registry.system_users)))
    issued = services.register_system_user(
        taxpayer=context.one(Taxpayer.objects.all()),
        name=f"ERP {context.at.isoformat()}",
        scopes=[DEFAULT_SCOPE],
        **context.why,
    )
    context.credentials.add(issued.credentials.client_secret)


@BY_SERVICE.add(weight=30)
def issue_secret(context: Context) -> None:
    """Mostly to a client that has none."""
    secrets = context.registry.credentials
    live = {row.system_user_id for row in secrets if row.is_live(context.now)}
    users = context.registry.system_users
    user = context.choose_mostly(users, lambda row: row.id not in live)
    issued = services.issue_secret(
        system_user=SystemUser.objects.get(pk=user.id),
        retire_old_at=context.soon() if context.rng.random() < 0.2 else None,
        **context.why,
    )
    context.credentials.add(issued.credentials.client_secret)


@BY_SERVICE.add()
def revoke_credential(context: Context) -> None:
    credential = context.one(Credential.objects.filter(revoked_at=None))
    services.revoke_credential(credential=credential, **context.why)


@BY_SERVICE.add()
def deactivate_taxpayer(context: Context) -> None:
    _set_taxpayer_active(context, is_active=False)


@BY_SERVICE.add(weight=14)
def activate_taxpayer(context: Context) -> None:
    _set_taxpayer_active(context, is_active=True)


def _set_taxpayer_active(context: Context, *, is_active: bool) -> None:
    taxpayer = context.one(Taxpayer.objects.filter(is_active=not is_active))
    services.set_taxpayer_active(taxpayer=taxpayer, is_active=is_active, **context.why)


@BY_SERVICE.add()
def register_intermediary(context: Context) -> None:
    known = {role.taxpayer_id for role in context.registry.intermediaries}
    rows = [row for row in context.registry.taxpayers if row.id not in known]
    asking = context.asking()
    row = context.choose_mostly(rows, lambda row: row.id in asking)
    taxpayer = Taxpayer.objects.get(pk=row.id)
    services.register_intermediary(taxpayer=taxpayer, until=context.end(), **context.who)


@BY_SERVICE.add(weight=20)
def grant_permission(context: Context) -> None:
    context.choose(range(_MOST_PERMISSIONS - len(context.registry.granted_permissions)))
    begin = context.soon() if context.rng.random() < 0.2 else context.at
    end = context.end()
    role, taxpayer = context.pair()
    services.grant_permission(
        taxpayer=Taxpayer.objects.get(pk=taxpayer),
        intermediary=Intermediary.objects.get(pk=role),
        codes=context.rng.sample(CODES, context.rng.randrange(1, len(CODES) + 1)),
        valid_from=begin,
        valid_until=end,
        **context.who,
    )


@BY_SERVICE.add()
def revoke_permission(context: Context) -> None:
    permission = GrantedPermission.objects.get(pk=context.permission().id)
    services.revoke_permission(permission=permission, **context.why)


@BY_SERVICE.add()
def revoke_codes(context: Context) -> None:
    row = GrantedPermission.objects.get(pk=context.permission().id)
    services.revoke_codes(
        taxpayer=row.taxpayer,
        intermediary=row.intermediary,
        codes=[context.rng.choice(CODES)],
        **context.why,
    )


@BY_SERVICE.add(weight=12)
def approve_request(context: Context) -> None:
    """A taxpayer approves what was asked for, or a part; mostly in place of what it had granted."""
    rng, row = context.rng, GrantedPermission.objects.get(pk=context.permission().id)
    context.choose(range(_MOST_PERMISSIONS - len(context.registry.granted_permissions)))
    codes = rng.sample(CODES, rng.randrange(1, len(CODES) + 1))
    request = ask_permission(
        taxpayer=row.taxpayer.identifier,
        intermediary=row.intermediary,
        codes=codes,
        client_id="vendor",
        valid_until=context.end(),
        replaces=rng.random() < 0.7,
        **context.who,
    )
    approved = codes[: rng.randrange(1, len(codes) + 1)]
    approve_permission_request(request=request, codes=approved, **context.who)


@BY_SERVICE.add(weight=14)
def ask_to_connect(context: Context) -> None:
    """An ERP system with a new key, which logins try from now on."""
    pair = new_pair()
    request = ask_connection(
        taxpayer=context.taxpayer().identifier,
        key=json.dumps(pair.public_jwk),
        name="ERP",
        source="",
        **context.who,
    )
    context.credentials.add(pair)
    context.connections.append(request)


@BY_SERVICE.add(weight=24, is_counter_changed=True)
def approve_to_connect(context: Context) -> None:
    context.choose(range(_MOST_CLIENTS - len(context.registry.system_users)))
    approve_connection(request=_shown(context), **context.who)


@BY_SERVICE.add()
def decline_to_connect(context: Context) -> None:
    decline_connection(request=_shown(context), **context.who)


@BY_SERVICE.add()
def withdraw_to_connect(context: Context) -> None:
    withdraw_permission_request(request=_shown(context), **context.who)


def _shown(context: Context) -> PermissionRequest:
    """One of the latest as it was when it was asked: others may have decided since."""
    present = {*PermissionRequest.objects.values_list("pk", flat=True)}
    rows = [row for row in context.connections if row.pk in present]
    return copy(context.choose(rows[-_LATEST:]))
