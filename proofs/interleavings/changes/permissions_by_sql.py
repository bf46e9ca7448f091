"""Changes of taxpayers, intermediaries and permissions by SQL: past the services."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES

PERMISSIONS_BY_SQL = Changes()


@PERMISSIONS_BY_SQL.add("taxpayers")
def set_taxpayers(context: Context) -> None:
    """Several in one statement; the names of some differ only afterwards."""
    ids = context.some(context.registry.taxpayers, 0.3)
    is_active = context.rng.random() < 0.8
    ids = ids if is_active else ids[:1]
    context.update("taxpayers", *ids, is_active=is_active, name="changed")


@PERMISSIONS_BY_SQL.add("taxpayers", weight=2)
def swap_taxpayers(context: Context) -> None:
    """Their TINs and ROB numbers."""
    one, other = context.taxpayer(), context.taxpayer()
    new = (("BETWEEN", "", one.id), (one.tin, one.rob, other.id), (other.tin, other.rob, one.id))
    for tin, rob, id_ in new:
        context.update("taxpayers", id_, tin=tin, rob=rob)


@PERMISSIONS_BY_SQL.add("taxpayers", weight=2)
def load_taxpayer_again(context: Context) -> None:
    """Deleted and inserted with the same key, as a load of data does it; foreign keys wait."""
    row = context.taxpayer()
    context.delete("taxpayers", row.id)
    context.execute(
        "INSERT INTO taxpayers (id, tin, rob, name, is_active, created_at)"
        " VALUES (%s, %s, %s, 'again', %s, %s)",
        *row[:3],
        context.rng.random() < 0.5 or not row.is_active,
        context.at,
    )


@PERMISSIONS_BY_SQL.add("intermediaries", weight=12)
def set_intermediary(context: Context) -> None:
    new = {"is_active": context.rng.random() < 0.8, "active_until": context.end()}
    context.update("intermediaries", context.choose(context.registry.intermediaries).id, **new)


@PERMISSIONS_BY_SQL.add("intermediaries", weight=2)
def move_intermediary(context: Context) -> None:
    """The role, with its permissions, to a taxpayer that has none."""
    known = {role.taxpayer_id for role in context.registry.intermediaries}
    free = context.choose([row for row in context.registry.taxpayers if row.id not in known])
    role = context.choose(context.registry.intermediaries)
    context.update("intermediaries", role.id, taxpayer_id=free.id)


@PERMISSIONS_BY_SQL.add(
    "intermediaries", "granted_permissions", "granted_permission_codes", weight=2
)
def delete_intermediary(context: Context) -> None:
    """First the role, then what hangs on it: foreign keys wait for the end of the transaction."""
    context.choose(context.registry.intermediaries[1:])  # one stays
    role = context.choose(context.registry.intermediaries).id
    permissions = context.registry.granted_permissions
    hanging = [row.id for row in permissions if row.intermediary_id == role]
    context.delete("intermediaries", role)
    context.delete("granted_permission_codes", *hanging, by="grantedpermission_id")
    context.delete("granted_permissions", *hanging)


@PERMISSIONS_BY_SQL.add("granted_permissions")
def grant_without_codes(context: Context) -> None:
    context.choose(range(16 - len(context.registry.granted_permissions)))
    context.execute(
        "INSERT INTO granted_permissions (intermediary_id, taxpayer_id, valid_from, created_at)"
        " VALUES (%s, %s, %s, now())",
        *context.pair(),
        context.at,
    )


@PERMISSIONS_BY_SQL.add("granted_permissions", weight=10)
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


@PERMISSIONS_BY_SQL.add("granted_permissions", weight=2)
def move_permission(context: Context) -> None:
    """To another taxpayer and another intermediary."""
    role = context.choose(context.registry.intermediaries).id
    new = {"taxpayer_id": context.taxpayer().id, "intermediary_id": role}
    context.update("granted_permissions", context.permission().id, **new)


@PERMISSIONS_BY_SQL.add("granted_permissions", "granted_permission_codes")
def delete_permission(context: Context) -> None:
    """The permission and its codes, in either order: foreign keys wait."""
    row = context.permission()
    rows = [("granted_permissions", "id"), ("granted_permission_codes", "grantedpermission_id")]
    context.rng.shuffle(rows)
    for table, column in rows:
        context.delete(table, row.id, by=column)


@PERMISSIONS_BY_SQL.add("granted_permission_codes")
def add_code(context: Context) -> None:
    context.execute(
        "INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
        " VALUES (%s, %s) ON CONFLICT DO NOTHING",
        context.permission().id,
        context.rng.choice(CODES),
    )


@PERMISSIONS_BY_SQL.add("granted_permission_codes")
def replace_code(context: Context) -> None:
    code = context.code().id
    context.update("granted_permission_codes", code, permissioncode_id="documents:reject")


@PERMISSIONS_BY_SQL.add("granted_permission_codes")
def delete_code(context: Context) -> None:
    context.delete("granted_permission_codes", context.code().id)
