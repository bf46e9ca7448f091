"""Changes of single rows by SQL, as they should not be made: past the services."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES, SCOPES

BY_SQL = Changes()
_MOST_SECRETS = 8


@BY_SQL.add()
def toggle_blocks(context: Context) -> None:
    """Of several clients in one statement."""
    ids = context.some(context.registry.system_users, 0.4)
    by, at = ("SQL", context.at) if context.rng.random() < 0.3 else ("", None)
    ids = ids[:1] if by else ids
    context.update("system_users", *ids, blocked_at=at, blocked_by=by, blocked_reason=by)


@BY_SQL.add(weight=10)
def set_client(context: Context) -> None:
    """Its end, scopes and limit; no scope at all, too."""
    scopes = " ".join(context.rng.sample(SCOPES, context.rng.choice((0, 1, 2, 2, 3))))
    new = {"scopes": scopes, "logins_per_minute": context.rng.choice((0, 2, 30, 60))}
    context.update("system_users", context.client().id, expires_at=context.end(), **new)


@BY_SQL.add()
def toggle_bindings(context: Context) -> None:
    """Of several clients in one statement; mostly to nothing."""
    binding = context.rng.choice(("", "", "", "dpop", "tls"))
    ids = context.some(context.registry.system_users, 0.4)
    context.update("system_users", *ids, token_binding=binding)


@BY_SQL.add(weight=14)
def set_limit(context: Context) -> None:
    """Mostly to nothing; also to unknown taxpayers, and of a client that acts for none."""
    rng = context.rng
    names = [*(str(row.identifier) for row in context.registry.taxpayers), "TUNKNOWN1"]
    context.update(
        *("system_users", context.client().id),
        allowed_permissions=" ".join(rng.sample(CODES, rng.choice((0,) * 15 + (2,)))),
        allowed_taxpayers=" ".join(rng.sample(names, rng.choice((0,) * 15 + (4,)))),
        only_on_behalf=rng.random() < 0.1,
    )


@BY_SQL.add(weight=3)
def set_networks(context: Context) -> None:
    """Of several secrets in one statement."""
    networks = context.rng.choice(("", "", "", "10.1.0.0/16", "10.1.64.0/18 10.9.9.1/32"))
    ids = context.some(context.registry.credentials, 0.5)
    context.update("credentials", *ids, allowed_networks=networks)


@BY_SQL.add(weight=2)
def move_client(context: Context) -> None:
    context.update("system_users", context.client().id, taxpayer_id=context.taxpayer().id)


@BY_SQL.add(weight=2)
def swap_client_ids(context: Context) -> None:
    one, other = context.client(), context.client()
    ids = ((one.id, "between"), (other.id, one.client_id), (one.id, other.client_id))
    for id_, client_id in ids:
        context.update("system_users", id_, client_id=client_id)


@BY_SQL.add(weight=2, is_counter_changed=True)
def delete_client(context: Context) -> None:
    row = context.choose(context.registry.system_users[5:])
    for table in ("permission_requests", "credentials"):
        context.delete(table, row.id, by="system_user_id")
    context.delete("system_users", row.id)


@BY_SQL.add()
def set_secret(context: Context) -> None:
    """Its end and whether it is revoked: this brings a revoked one back, too."""
    revoked_at = context.at if context.rng.random() < 0.3 else None
    new = {"expires_at": context.end() or context.far(), "revoked_at": revoked_at, "slot": None}
    context.update("credentials", context.choose(context.registry.credentials).id, **new)


@BY_SQL.add(weight=2)
def delete_secret(context: Context) -> None:
    """Mostly one that is not the latest."""
    rows = context.registry.credentials
    index = min(context.rng.randrange(len(rows) + 1) for _ in range(2))
    context.delete("credentials", context.choose(rows[index:]).id)


@BY_SQL.add(weight=2)
def delete_old_secrets(context: Context) -> None:
    ids = [row.id for row in context.registry.credentials[:-_MOST_SECRETS]]
    context.choose(ids)
    context.delete("credentials", *ids)


@BY_SQL.add(weight=2)
def move_secret(context: Context) -> None:
    """To another client, with which it then matches."""
    secret = context.choose(context.registry.credentials).id
    context.update("credentials", secret, system_user_id=context.client().id, slot=None)


@BY_SQL.add(is_counter_changed=True, weight=2)
def delete_counter(context: Context) -> None:
    context.delete("client_usage", context.client().id, by="system_user_id")


@BY_SQL.add()
def set_taxpayers(context: Context) -> None:
    """Several in one statement; the names of some differ only afterwards."""
    ids = context.some(context.registry.taxpayers, 0.3)
    is_active = context.rng.random() < 0.8
    ids = ids if is_active else ids[:1]
    context.update("taxpayers", *ids, is_active=is_active, name="changed")


@BY_SQL.add(weight=2)
def swap_taxpayers(context: Context) -> None:
    """Their TINs and ROB numbers."""
    one, other = context.taxpayer(), context.taxpayer()
    new = (("BETWEEN", "", one.id), (one.tin, one.rob, other.id), (other.tin, other.rob, one.id))
    for tin, rob, id_ in new:
        context.update("taxpayers", id_, tin=tin, rob=rob)


@BY_SQL.add(weight=2)
def load_taxpayer_again(context: Context) -> None:
    """Deleted and inserted with the same key, as a load of data does it; foreign keys wait."""
    row = context.taxpayer()
    context.delete("taxpayers", row.id)
    context.execute(
        "INSERT INTO taxpayers (id, tin, rob, name, is_active, created_at)"
        " VALUES (%s, %s, %s, 'again', %s, %s)",
        *(row.id, row.tin, row.rob),
        context.rng.random() < 0.5 or not row.is_active,
        context.at,
    )


@BY_SQL.add(weight=12)
def set_intermediary(context: Context) -> None:
    new = {"is_active": context.rng.random() < 0.8, "active_until": context.end()}
    context.update("intermediaries", context.choose(context.registry.intermediaries).id, **new)


@BY_SQL.add(weight=2)
def move_intermediary(context: Context) -> None:
    """The role, with its permissions, to a taxpayer that has none."""
    known = {role.taxpayer_id for role in context.registry.intermediaries}
    free = context.choose([row for row in context.registry.taxpayers if row.id not in known])
    role = context.choose(context.registry.intermediaries)
    context.update("intermediaries", role.id, taxpayer_id=free.id)


@BY_SQL.add(weight=2)
def delete_intermediary(context: Context) -> None:
    """First the role, then what hangs on it: foreign keys wait for the end of the transaction."""
    context.choose(context.registry.intermediaries[1:])  # one stays
    role = context.choose(context.registry.intermediaries).id
    permissions = context.registry.granted_permissions
    hanging = [row.id for row in permissions if row.intermediary_id == role]
    context.delete("intermediaries", role)
    context.delete("granted_permission_codes", *hanging, by="grantedpermission_id")
    context.delete("granted_permissions", *hanging)


@BY_SQL.add()
def grant_without_codes(context: Context) -> None:
    context.choose(range(16 - len(context.registry.granted_permissions)))
    context.execute(
        "INSERT INTO granted_permissions (intermediary_id, taxpayer_id, valid_from, created_at)"
        " VALUES (%s, %s, %s, now())",
        *context.pair(),
        context.at,
    )


@BY_SQL.add(weight=10)
def set_permission(context: Context) -> None:
    """Its dates: this brings a revoked or expired one back, too."""
    begin = context.soon() if context.rng.random() < 0.1 else context.at
    end = context.end()
    context.update(
        *("granted_permissions", context.permission().id),
        valid_from=begin,
        valid_until=end if end and end > begin else None,
        revoked_at=context.at if context.rng.random() < 0.2 else None,
    )


@BY_SQL.add(weight=2)
def move_permission(context: Context) -> None:
    role = context.choose(context.registry.intermediaries).id
    new = {"taxpayer_id": context.taxpayer().id, "intermediary_id": role}
    context.update("granted_permissions", context.permission().id, **new)


@BY_SQL.add()
def delete_permission(context: Context) -> None:
    """The permission and its codes, in either order: foreign keys wait."""
    row = context.permission()
    rows = [("granted_permissions", "id"), ("granted_permission_codes", "grantedpermission_id")]
    context.rng.shuffle(rows)
    for table, column in rows:
        context.delete(table, row.id, by=column)


@BY_SQL.add()
def add_code(context: Context) -> None:
    context.execute(
        "INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
        " VALUES (%s, %s) ON CONFLICT DO NOTHING",
        context.permission().id,
        context.rng.choice(CODES),
    )


@BY_SQL.add()
def replace_code(context: Context) -> None:
    code = context.code().id
    context.update("granted_permission_codes", code, permissioncode_id="documents:reject")


@BY_SQL.add()
def delete_code(context: Context) -> None:
    context.delete("granted_permission_codes", context.code().id)
