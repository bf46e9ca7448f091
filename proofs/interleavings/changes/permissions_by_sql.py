"""Changes of taxpayers, intermediaries and permissions by SQL: past the services."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES

PERMISSIONS_BY_SQL = Changes()


@PERMISSIONS_BY_SQL.add("taxpayers")
def set_taxpayers(context: Context) -> None:
    """Several in one statement; the names of some differ only afterwards."""
    ids = [row.id for row in context.registry.taxpayers if context.rng.random() < 0.3]
    is_active = context.rng.random() < 0.8
    context.execute(
        "UPDATE taxpayers SET is_active = %s, name = 'changed' WHERE id = ANY(%s)",
        is_active,
        ids if is_active else ids[:1],
    )


@PERMISSIONS_BY_SQL.add("taxpayers", weight=2)
def swap_taxpayers(context: Context) -> None:
    """Their TINs and ROB numbers."""
    one, other = (context.choose(context.registry.taxpayers) for _ in range(2))
    new = (("BETWEEN", "", one.id), (one.tin, one.rob, other.id), (other.tin, other.rob, one.id))
    for tin, rob, id_ in new:
        context.execute("UPDATE taxpayers SET tin = %s, rob = %s WHERE id = %s", tin, rob, id_)


@PERMISSIONS_BY_SQL.add("taxpayers", weight=2)
def load_taxpayer_again(context: Context) -> None:
    """Deleted and inserted with the same key, as a load of data does it; foreign keys wait."""
    row = context.choose(context.registry.taxpayers)
    context.execute("DELETE FROM taxpayers WHERE id = %s", row.id)
    context.execute(
        "INSERT INTO taxpayers (id, tin, rob, name, is_active, created_at)"
        " VALUES (%s, %s, %s, 'again', %s, %s)",
        *row[:3],
        context.rng.random() < 0.5 or not row.is_active,
        context.at,
    )


@PERMISSIONS_BY_SQL.add("intermediaries", weight=12)
def set_intermediary(context: Context) -> None:
    context.execute(
        "UPDATE intermediaries SET is_active = %s, active_until = %s WHERE id = %s",
        context.rng.random() < 0.8,
        context.end(),
        context.choose(context.registry.intermediaries).id,
    )


@PERMISSIONS_BY_SQL.add("intermediaries", weight=2)
def move_intermediary(context: Context) -> None:
    """The role, with its permissions, to a taxpayer that has none."""
    known = {role.taxpayer_id for role in context.registry.intermediaries}
    free = [row for row in context.registry.taxpayers if row.id not in known]
    context.execute(
        "UPDATE intermediaries SET taxpayer_id = %s WHERE id = %s",
        context.choose(free).id,
        context.choose(context.registry.intermediaries).id,
    )


@PERMISSIONS_BY_SQL.add(
    "intermediaries", "granted_permissions", "granted_permission_codes", weight=2
)
def delete_intermediary(context: Context) -> None:
    """First the role, then what hangs on it: foreign keys wait for the end of the transaction."""
    context.choose(context.registry.intermediaries[1:])  # one stays
    role = context.choose(context.registry.intermediaries).id
    context.execute("DELETE FROM intermediaries WHERE id = %s", role)
    context.execute(
        "DELETE FROM granted_permission_codes WHERE grantedpermission_id IN"
        " (SELECT id FROM granted_permissions WHERE intermediary_id = %s)",
        role,
    )
    context.execute("DELETE FROM granted_permissions WHERE intermediary_id = %s", role)


@PERMISSIONS_BY_SQL.add("granted_permissions")
def grant_without_codes(context: Context) -> None:
    context.choose(range(16 - len(context.registry.granted_permissions)))
    role, taxpayer = context.pair()
    context.execute(
        "INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)"
        " VALUES (%s, %s, %s, now())",
        taxpayer,
        role,
        context.at,
    )


@PERMISSIONS_BY_SQL.add("granted_permissions", weight=10)
def set_permission(context: Context) -> None:
    """Its dates: this brings a revoked or expired one back, too."""
    begin = context.soon() if context.rng.random() < 0.1 else context.at
    end = context.end()
    context.execute(
        "UPDATE granted_permissions SET valid_from = %s, valid_until = %s, revoked_at = %s"
        " WHERE id = %s",
        begin,
        end if end and end > begin else None,
        context.at if context.rng.random() < 0.2 else None,
        context.permission().id,
    )


@PERMISSIONS_BY_SQL.add("granted_permissions", weight=2)
def move_permission(context: Context) -> None:
    """To another taxpayer and another intermediary."""
    context.execute(
        "UPDATE granted_permissions SET taxpayer_id = %s, intermediary_id = %s WHERE id = %s",
        context.choose(context.registry.taxpayers).id,
        context.choose(context.registry.intermediaries).id,
        context.permission().id,
    )


@PERMISSIONS_BY_SQL.add("granted_permissions", "granted_permission_codes")
def delete_permission(context: Context) -> None:
    """The permission and its codes, in either order: foreign keys wait."""
    row = context.permission()
    statements = [
        "DELETE FROM granted_permissions WHERE id = %s",
        "DELETE FROM granted_permission_codes WHERE grantedpermission_id = %s",
    ]
    context.rng.shuffle(statements)
    for sql in statements:
        context.execute(sql, row.id)


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
    context.execute(
        "UPDATE granted_permission_codes SET permissioncode_id = 'documents:reject' WHERE id = %s",
        context.code().id,
    )


@PERMISSIONS_BY_SQL.add("granted_permission_codes")
def delete_code(context: Context) -> None:
    context.execute(
        "DELETE FROM granted_permission_codes WHERE id = %s",
        context.code().id,
    )
