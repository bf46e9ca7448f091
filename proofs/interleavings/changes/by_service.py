"""Changes of the registry by its services, as staff and operators make them.

Triggers note both alike, so a column that a service only sets is changed in `by_sql`.
"""

from proofs.interleavings.changes.change import AUTHOR, Changes, Context
from proofs.interleavings.world import CODES
from taxpayers import services
from taxpayers.models import (
    DEFAULT_SCOPE,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
)
from taxpayers.services.decisions import approve_permission_request
from taxpayers.services.permission_requests import ask_permission

BY_SERVICE = Changes()
_MOST_CLIENTS, _MOST_PERMISSIONS = 7, 14


@BY_SERVICE.add("system_users")
def block(context: Context) -> None:
    row = context.choose([row for row in context.registry.system_users if not row.blocked_at])
    user = SystemUser.objects.get(pk=row.id)
    services.block_system_user(system_user=user, **context.why)


@BY_SERVICE.add("system_users", weight=12)
def unblock(context: Context) -> None:
    row = context.choose([row for row in context.registry.system_users if row.blocked_at])
    user = SystemUser.objects.get(pk=row.id)
    services.unblock_system_user(system_user=user, **context.why)


@BY_SERVICE.add("system_users", weight=2)
def limit_client(context: Context) -> None:
    """To some permissions, to some taxpayers that it may have asked for, or to both."""
    registry, rng = context.registry, context.rng
    roles = {role.taxpayer_id for role in registry.intermediaries}
    row = context.choose([row for row in registry.system_users if row.taxpayer_id in roles])
    others = [other for other in registry.taxpayers if other.id != row.taxpayer_id]
    services.limit_system_user(
        system_user=SystemUser.objects.get(pk=row.id),
        permissions=rng.sample(CODES, rng.choice((0, 1, 2))),
        taxpayers=[other.identifier for other in rng.sample(others, rng.choice((0, 2, 3)))],
        only_on_behalf=rng.choice((False, True)),
        **context.why,
    )


@BY_SERVICE.add("system_users", "credentials", is_counter_changed=True)
def register_client(context: Context) -> None:
    context.choose(range(_MOST_CLIENTS - len(context.registry.system_users)))
    issued = services.register_system_user(
        reason="a test",
        taxpayer=Taxpayer.objects.get(pk=context.choose(context.registry.taxpayers).id),
        name=f"ERP {context.at.isoformat()}",
        scopes=[DEFAULT_SCOPE],
        by=AUTHOR,
        at=context.at,
    )
    context.credentials.add(issued.system_user.pk, issued.credentials.client_secret)


@BY_SERVICE.add("credentials", weight=30)
def issue_secret(context: Context) -> None:
    """Mostly to a client that has none."""
    secrets = context.registry.credentials
    live = {row.system_user_id for row in secrets if row.is_live(context.now)}
    users = context.registry.system_users
    user = SystemUser.objects.get(
        pk=context.choose_mostly(users, lambda row: row.id not in live).id
    )
    issued = services.issue_secret(
        reason="a test",
        system_user=user,
        retire_old_at=context.soon() if context.rng.random() < 0.2 else None,
        by=AUTHOR,
        at=context.at,
    )
    context.credentials.add(user.pk, issued.credentials.client_secret)


@BY_SERVICE.add("credentials")
def revoke_credential(context: Context) -> None:
    rows = [row for row in context.registry.credentials if not row.revoked_at]
    secret = Credential.objects.get(pk=context.choose(rows).id)
    services.revoke_credential(credential=secret, **context.why)


@BY_SERVICE.add("taxpayers")
def deactivate_taxpayer(context: Context) -> None:
    row = context.choose([row for row in context.registry.taxpayers if row.is_active])
    _set_taxpayer_active(context, row.id, is_active=False)


@BY_SERVICE.add("taxpayers", weight=14)
def activate_taxpayer(context: Context) -> None:
    row = context.choose([row for row in context.registry.taxpayers if not row.is_active])
    _set_taxpayer_active(context, row.id, is_active=True)


def _set_taxpayer_active(context: Context, id_: int, *, is_active: bool) -> None:
    services.set_taxpayer_active(
        taxpayer=Taxpayer.objects.get(pk=id_), is_active=is_active, **context.why
    )


@BY_SERVICE.add("intermediaries")
def register_intermediary(context: Context) -> None:
    known = {role.taxpayer_id for role in context.registry.intermediaries}
    rows = [row for row in context.registry.taxpayers if row.id not in known]
    asking = context.asking()
    row = context.choose_mostly(rows, lambda row: row.id in asking)
    taxpayer = Taxpayer.objects.get(pk=row.id)
    services.register_intermediary(taxpayer=taxpayer, until=context.end(), by=AUTHOR, at=context.at)


@BY_SERVICE.add("granted_permissions", "granted_permission_codes", weight=20)
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
        by=AUTHOR,
        at=context.at,
    )


@BY_SERVICE.add("granted_permissions")
def revoke_permission(context: Context) -> None:
    permission = GrantedPermission.objects.get(pk=context.permission().id)
    services.revoke_permission(permission=permission, **context.why)


@BY_SERVICE.add("granted_permissions", "granted_permission_codes")
def revoke_codes(context: Context) -> None:
    row = context.permission()
    services.revoke_codes(
        taxpayer=Taxpayer.objects.get(pk=row.taxpayer_id),
        intermediary=Intermediary.objects.get(pk=row.intermediary_id),
        codes=[context.rng.choice(CODES)],
        **context.why,
    )


@BY_SERVICE.add("granted_permissions", "granted_permission_codes", weight=12)
def approve_request(context: Context) -> None:
    """A taxpayer approves what was asked for, or a part; mostly in place of what it had granted."""
    rng, row = context.rng, context.permission()
    context.choose(range(_MOST_PERMISSIONS - len(context.registry.granted_permissions)))
    codes = rng.sample(CODES, rng.randrange(1, len(CODES) + 1))
    request = ask_permission(
        taxpayer=Taxpayer.objects.get(pk=row.taxpayer_id).identifier,
        intermediary=Intermediary.objects.get(pk=row.intermediary_id),
        codes=codes,
        client_id="vendor",
        valid_until=context.end(),
        replaces=rng.random() < 0.7,
        by=AUTHOR,
        at=context.at,
    )
    approved = codes[: rng.randrange(1, len(codes) + 1)]
    approve_permission_request(request=request, codes=approved, by=AUTHOR, at=context.at)
