"""Changes of clients and secrets by SQL, as they should not be made: past the services."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES, SCOPES

BY_SQL = Changes()
_MOST_SECRETS = 8


@BY_SQL.add("system_users")
def toggle_blocks(context: Context) -> None:
    """Of several clients in one statement."""
    ids = [row.id for row in context.registry.system_users if context.rng.random() < 0.4]
    if context.rng.random() < 0.3:
        context.execute(
            "UPDATE system_users SET blocked_at = %s, blocked_by = 'SQL', blocked_reason = 'SQL'"
            " WHERE id = ANY(%s)",
            context.at,
            ids[:1],
        )
    else:
        context.execute(
            "UPDATE system_users SET blocked_at = NULL, blocked_by = '', blocked_reason = ''"
            " WHERE id = ANY(%s)",
            ids,
        )


@BY_SQL.add("system_users", weight=10)
def set_client(context: Context) -> None:
    """Its end, scopes and limit; no scope at all, too."""
    scopes = context.rng.sample(SCOPES, context.rng.choice((0, 1, 2, 2, 3)))
    context.execute(
        "UPDATE system_users SET expires_at = %s, scopes = %s, logins_per_minute = %s"
        " WHERE id = %s",
        context.end(),
        " ".join(scopes),
        context.rng.choice((0, 2, 30, 60)),
        context.choose(context.registry.system_users).id,
    )


@BY_SQL.add("system_users")
def toggle_bindings(context: Context) -> None:
    """Of several clients in one statement; mostly to nothing."""
    context.execute(
        "UPDATE system_users SET token_binding = %s WHERE id = ANY(%s)",
        context.rng.choice(("", "", "", "dpop", "tls")),
        [row.id for row in context.registry.system_users if context.rng.random() < 0.4],
    )


@BY_SQL.add("system_users", weight=14)
def set_limit(context: Context) -> None:
    """Mostly to nothing; also to unknown taxpayers, and of a client that acts for none."""
    names = [str(row.identifier) for row in context.registry.taxpayers]
    context.execute(
        "UPDATE system_users SET allowed_permissions = %s, allowed_taxpayers = %s,"
        " only_on_behalf = %s WHERE id = %s",
        " ".join(context.rng.sample(CODES, context.rng.choice((0,) * 15 + (2,)))),
        " ".join(context.rng.sample([*names, "TUNKNOWN1"], context.rng.choice((0,) * 15 + (4,)))),
        context.rng.random() < 0.1,
        context.choose(context.registry.system_users).id,
    )


@BY_SQL.add("credentials", weight=3)
def set_networks(context: Context) -> None:
    """Of several secrets in one statement."""
    rows = context.registry.credentials
    context.execute(
        "UPDATE credentials SET allowed_networks = %s WHERE id = ANY(%s)",
        context.rng.choice(("", "", "", "10.1.0.0/16", "10.1.64.0/18 10.9.9.1/32")),
        [row.id for row in rows if context.rng.random() < 0.5],
    )


@BY_SQL.add("system_users", weight=2)
def move_client(context: Context) -> None:
    """To another taxpayer."""
    context.execute(
        "UPDATE system_users SET taxpayer_id = %s WHERE id = %s",
        context.choose(context.registry.taxpayers).id,
        context.choose(context.registry.system_users).id,
    )


@BY_SQL.add("system_users", weight=2)
def swap_client_ids(context: Context) -> None:
    one, other = (context.choose(context.registry.system_users) for _ in range(2))
    ids = ((one.id, "between"), (other.id, one.client_id), (one.id, other.client_id))
    for id_, client_id in ids:
        context.execute("UPDATE system_users SET client_id = %s WHERE id = %s", client_id, id_)


@BY_SQL.add("system_users", "credentials", weight=2, is_counter_changed=True)
def delete_client(context: Context) -> None:
    row = context.choose(context.registry.system_users[5:])
    context.execute("DELETE FROM credentials WHERE system_user_id = %s", row.id)
    context.execute("DELETE FROM system_users WHERE id = %s", row.id)


@BY_SQL.add("credentials")
def set_secret(context: Context) -> None:
    """Its end and whether it is revoked: this brings a revoked one back, too."""
    is_revoked = context.rng.random() < 0.3
    context.execute(
        "UPDATE credentials SET expires_at = %s, revoked_at = %s, slot = NULL WHERE id = %s",
        context.end() or context.far(),
        context.at if is_revoked else None,
        context.choose(context.registry.credentials).id,
    )


@BY_SQL.add("credentials", weight=2)
def delete_secret(context: Context) -> None:
    """Mostly one that is not the latest."""
    rows = context.registry.credentials
    index = min(context.rng.randrange(len(rows) + 1) for _ in range(2))
    context.execute("DELETE FROM credentials WHERE id = %s", context.choose(rows[index:]).id)


@BY_SQL.add("credentials", weight=2)
def delete_old_secrets(context: Context) -> None:
    ids = [row.id for row in context.registry.credentials[:-_MOST_SECRETS]]
    context.choose(ids)
    context.execute("DELETE FROM credentials WHERE id = ANY(%s)", ids)


@BY_SQL.add("credentials", weight=2)
def move_secret(context: Context) -> None:
    """To another client, with which it then matches."""
    context.execute(
        "UPDATE credentials SET system_user_id = %s, slot = NULL WHERE id = %s",
        context.choose(context.registry.system_users).id,
        context.choose(context.registry.credentials).id,
    )


@BY_SQL.add(is_counter_changed=True, weight=2)
def delete_counter(context: Context) -> None:
    context.execute(
        "DELETE FROM client_usage WHERE system_user_id = %s",
        context.choose(context.registry.system_users).id,
    )
