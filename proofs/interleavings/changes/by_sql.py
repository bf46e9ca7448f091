"""Changes of clients and secrets by SQL, as they should not be made: past the services."""

from proofs.interleavings.changes.change import Changes, Context
from proofs.interleavings.world import CODES, SCOPES

BY_SQL = Changes()
_MOST_SECRETS = 8


@BY_SQL.add("system_users")
def toggle_blocks(context: Context) -> None:
    """Of several clients in one statement."""
    ids = context.some(context.registry.system_users, 0.4)
    by, at = ("SQL", context.at) if context.rng.random() < 0.3 else ("", None)
    ids = ids[:1] if by else ids
    context.update("system_users", *ids, blocked_at=at, blocked_by=by, blocked_reason=by)


@BY_SQL.add("system_users", weight=10)
def set_client(context: Context) -> None:
    """Its end, scopes and limit; no scope at all, too."""
    scopes = " ".join(context.rng.sample(SCOPES, context.rng.choice((0, 1, 2, 2, 3))))
    new = {"scopes": scopes, "logins_per_minute": context.rng.choice((0, 2, 30, 60))}
    context.update("system_users", context.client().id, expires_at=context.end(), **new)


@BY_SQL.add("system_users")
def toggle_bindings(context: Context) -> None:
    """Of several clients in one statement; mostly to nothing."""
    binding = context.rng.choice(("", "", "", "dpop", "tls"))
    ids = context.some(context.registry.system_users, 0.4)
    context.update("system_users", *ids, token_binding=binding)


@BY_SQL.add("system_users", weight=14)
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


@BY_SQL.add("credentials", weight=3)
def set_networks(context: Context) -> None:
    """Of several secrets in one statement."""
    networks = context.rng.choice(("", "", "", "10.1.0.0/16", "10.1.64.0/18 10.9.9.1/32"))
    ids = context.some(context.registry.credentials, 0.5)
    context.update("credentials", *ids, allowed_networks=networks)


@BY_SQL.add("system_users", weight=2)
def move_client(context: Context) -> None:
    """To another taxpayer."""
    context.update("system_users", context.client().id, taxpayer_id=context.taxpayer().id)


@BY_SQL.add("system_users", weight=2)
def swap_client_ids(context: Context) -> None:
    one, other = context.client(), context.client()
    ids = ((one.id, "between"), (other.id, one.client_id), (one.id, other.client_id))
    for id_, client_id in ids:
        context.update("system_users", id_, client_id=client_id)


@BY_SQL.add("system_users", "credentials", weight=2, is_counter_changed=True)
def delete_client(context: Context) -> None:
    row = context.choose(context.registry.system_users[5:])
    for table in ("permission_requests", "credentials"):
        context.delete(table, row.id, by="system_user_id")
    context.delete("system_users", row.id)


@BY_SQL.add("credentials")
def set_secret(context: Context) -> None:
    """Its end and whether it is revoked: this brings a revoked one back, too."""
    revoked_at = context.at if context.rng.random() < 0.3 else None
    new = {"expires_at": context.end() or context.far(), "revoked_at": revoked_at, "slot": None}
    context.update("credentials", context.choose(context.registry.credentials).id, **new)


@BY_SQL.add("credentials", weight=2)
def delete_secret(context: Context) -> None:
    """Mostly one that is not the latest."""
    rows = context.registry.credentials
    index = min(context.rng.randrange(len(rows) + 1) for _ in range(2))
    context.delete("credentials", context.choose(rows[index:]).id)


@BY_SQL.add("credentials", weight=2)
def delete_old_secrets(context: Context) -> None:
    ids = [row.id for row in context.registry.credentials[:-_MOST_SECRETS]]
    context.choose(ids)
    context.delete("credentials", *ids)


@BY_SQL.add("credentials", weight=2)
def move_secret(context: Context) -> None:
    """To another client, with which it then matches."""
    secret = context.choose(context.registry.credentials).id
    context.update("credentials", secret, system_user_id=context.client().id, slot=None)


@BY_SQL.add(is_counter_changed=True, weight=2)
def delete_counter(context: Context) -> None:
    context.delete("client_usage", context.client().id, by="system_user_id")
