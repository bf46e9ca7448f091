"""A change that could alter a login renews the epochs of the clients concerned, and no others."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import AlterField
from django.test.utils import CaptureQueriesContext

from taxpayers.apps import check_triggers
from taxpayers.facts import status_triggers, triggers as installed
from taxpayers.facts.epochs.row import DECIDING_COLUMNS
from taxpayers.models import Intermediary, RateLimitCounter, SystemUser
from tests.support import make
from tests.support.factories import SUBMIT
from tokens.rate_limits.quota import CounterState, current_quota

pytestmark = pytest.mark.django_db

AT = datetime.now(UTC)
DAY = timedelta(days=1)


class Registry:
    """A shop, which is represented by an agent and was by a former one; others in these roles."""

    def __init__(self) -> None:
        users: list[SystemUser] = [make.system_user() for _ in range(5)]
        self.shop, self.agent, self.former_agent, self.other_shop, self.other_agent = users
        shop, other_shop = self.shop.taxpayer, self.other_shop.taxpayer
        self.second_of_shop: SystemUser = make.system_user(taxpayer=shop)
        self.blocked: SystemUser = make.system_user(blocked_at=AT - DAY)
        self.secret = make.credential(system_user=self.shop)
        self.role, former_role, other_role = (
            make.intermediary(taxpayer=user.taxpayer)
            for user in (self.agent, self.former_agent, self.other_agent)
        )
        self.permission = make.permission(taxpayer=shop, intermediary=self.role, codes=[SUBMIT])
        make.permission(taxpayer=shop, intermediary=former_role, revoked_at=AT - DAY)
        make.permission(taxpayer=other_shop, intermediary=other_role)

    def epochs(self) -> dict[str, int]:
        names = {user.pk: name for name, user in vars(self).items() if isinstance(user, SystemUser)}
        rows = RateLimitCounter.objects.values_list("pk", "epoch")
        return {names.get(pk, "new"): epoch for pk, epoch in rows}

    def sql(self, statement: str) -> None:
        """Executes SQL by hand; {shop} is the id of a client, {taxpayer_of_shop} of its owner."""
        ids: dict[str, object] = {
            "role": self.role.pk, "permission": self.permission.pk, "secret": self.secret.pk,
            "shop": self.shop.pk, "agent": self.agent.pk, "other_agent": self.other_agent.pk,
        }  # fmt: skip
        for name in ("shop", "agent", "former_agent", "other_shop", "other_agent"):
            ids[f"taxpayer_of_{name}"] = getattr(self, name).taxpayer_id
        ids["other_role"] = Intermediary.objects.get(taxpayer=self.other_agent.taxpayer).pk
        with connection.cursor() as cursor:
            cursor.execute(statement.format(**ids))


@pytest.fixture
def registry() -> Registry:
    return Registry()


def renewed_by(registry: Registry, change: Callable[[], object]) -> set[str]:
    before = registry.epochs()
    change()
    after = registry.epochs()
    return {name for name in before | after if before.get(name) != after.get(name)}


SHOP = {"shop", "second_of_shop"}
AGENTS = {"agent", "former_agent"}


# Each change by hand, and the clients that it concerns: services write the same rows.
NEW_USER = (
    "INSERT INTO system_users (client_id, taxpayer_id, name, scopes, logins_per_minute, created,"
    " updated, blocked_by, blocked_reason) SELECT {values} FROM system_users WHERE {where}"
)
COPY_OF = "taxpayer_id, name, scopes, logins_per_minute, created, updated, '', ''"
SQL: dict[str, tuple[str, set[str]]] = {
    "new system user": (
        NEW_USER.format(values=f"'new', {COPY_OF}", where="id = {shop}"), {"new"}
    ),
    "client ID": ("UPDATE system_users SET client_id = 'other' WHERE id = {shop}", {"shop"}),
    "limit": ("UPDATE system_users SET logins_per_minute = 0 WHERE id = {shop}", {"shop"}),
    "taxpayer of a system user": (
        "UPDATE system_users SET taxpayer_id = {taxpayer_of_agent} WHERE id = {shop}", {"shop"},
    ),
    "every system user": (
        "UPDATE system_users SET scopes = 'Other'",
        SHOP | AGENTS | {"other_shop", "other_agent", "blocked"},
    ),
    "token binding": (
        "UPDATE system_users SET token_binding = 'dpop' WHERE id = {shop}", {"shop"}
    ),
    "only on behalf of others": (
        "UPDATE system_users SET only_on_behalf = true WHERE id = {shop}", {"shop"},
    ),
    "networks of a secret": (
        "UPDATE credentials SET allowed_networks = '192.0.2.0/24' WHERE id = {secret}",
        {"shop"},
    ),
    "the same values": ("UPDATE system_users SET scopes = scopes, name = 'New'", set()),
    "why it is blocked": (
        "UPDATE system_users SET blocked_by = 'x', blocked_reason = 'y'"
        " WHERE blocked_at IS NOT NULL", set(),
    ),
    "system user that is gone": ("DELETE FROM system_users WHERE id = {agent}", {"agent"}),
    "new secret": (
        "INSERT INTO credentials (system_user_id, lookup, hint, created_at, expires_at)"
        " SELECT {agent}, lookup, hint, created_at, expires_at FROM credentials", {"agent"},
    ),
    "hash of a secret": (
        "UPDATE credentials SET lookup = 'x' WHERE id = {secret}", {"shop"}
    ),
    "owner of a secret": (
        "UPDATE credentials SET system_user_id = {agent} WHERE id = {secret}",
        {"shop", "agent"},
    ),
    "secret that is gone": ("DELETE FROM credentials WHERE id = {secret}", {"shop"}),
    "TIN": ("UPDATE taxpayers SET tin = 'X1' WHERE id = {taxpayer_of_shop}", SHOP | AGENTS),
    "inactive taxpayer": (
        "UPDATE taxpayers SET is_active = false WHERE id = {taxpayer_of_shop}", SHOP | AGENTS,
    ),
    "name of a taxpayer": ("UPDATE taxpayers SET name = 'New', is_active = is_active", set()),
    "taxpayer that is gone": (
        "DELETE FROM taxpayers WHERE id = {taxpayer_of_shop}", SHOP | AGENTS
    ),
    "new intermediary": (
        "INSERT INTO intermediaries (taxpayer_id, created_at)"
        " SELECT id, created_at FROM taxpayers WHERE id = {taxpayer_of_shop}", SHOP,
    ),
    "end of an intermediary": (
        "UPDATE intermediaries SET active_until = '2026-01-01 00:00:00' WHERE id = {role}",
        {"agent"},
    ),
    "taxpayer of an intermediary": (
        "UPDATE intermediaries SET taxpayer_id = {taxpayer_of_shop} WHERE id = {role}",
        SHOP | {"agent"},
    ),
    "intermediary that is gone": ("DELETE FROM intermediaries WHERE id = {role}", {"agent"}),
    "new permission": (
        "INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)"
        " SELECT {taxpayer_of_other_shop}, intermediary_id, valid_from, created_at"
        " FROM granted_permissions WHERE id = {permission}", {"agent"},
    ),
    "taxpayer of a permission": (
        "UPDATE granted_permissions SET taxpayer_id = {taxpayer_of_other_shop}"
        " WHERE id = {permission}", {"agent"},
    ),
    "intermediary of a permission": (
        "UPDATE granted_permissions SET intermediary_id = {other_role} WHERE id = {permission}",
        {"agent", "other_agent"},
    ),
    "permission that is gone": (
        "DELETE FROM granted_permissions WHERE id = {permission}", {"agent"},
    ),
    "new code": (
        "INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
        " VALUES ({permission}, 'documents:view')", {"agent"},
    ),
    "code that is gone": (
        "DELETE FROM granted_permission_codes WHERE grantedpermission_id = {permission}",
        {"agent"},
    ),
    "row of a client that is gone": (
        "DELETE FROM client_usage WHERE system_user_id = {shop}", {"shop"},
    ),
    "a login": (
        "UPDATE client_usage SET window_started_at = '2026-01-01 00:00:00', used = used + 1,"
        " secrets_used = '{{\"1\": \"2026-01-01\"}}'", set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SQL)
def test_sql_by_hand_renews_the_epochs_of_the_clients_concerned(
    name: str, registry: Registry
) -> None:
    statement, concerned = SQL[name]
    with transaction.atomic():
        assert renewed_by(registry, lambda: registry.sql(statement)) == concerned
        transaction.set_rollback(True)  # before foreign keys to what is gone are checked


@pytest.mark.postgresql
# status_indexes has a trigger for the lists of ended tokens, and decides no login.
@pytest.mark.parametrize(
    "table", sorted(set(installed.names("postgresql").values()) - {"status_indexes"})
)
def test_a_truncated_table_renews_the_epochs_of_all_clients(table: str, registry: Registry) -> None:
    before = registry.epochs()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # nothing pending on the tables
        cursor.execute(f"TRUNCATE {table} CASCADE")
    after = registry.epochs()
    assert set(after) == (set() if table in ("system_users", "taxpayers") else set(before))
    assert not set(before.values()) & set(after.values())


def test_no_epoch_returns_and_no_two_clients_have_the_same(registry: Registry) -> None:
    seen = list(registry.epochs().values())
    for scopes in ["Other", "InvoicingAPI"] * 5:
        SystemUser.objects.update(scopes=scopes)
        seen += registry.epochs().values()
    assert len(seen) == len(set(seen)) == 11 * 7


def test_a_client_has_a_row_that_was_never_used_from_its_registration_on(
    registry: Registry,
) -> None:
    row = RateLimitCounter.objects.get(pk=registry.shop.pk)
    assert (row.window_started_at, row.used) == (datetime(1970, 1, 1, tzinfo=UTC), 0)
    assert registry.secret.last_used_at is None
    assert current_quota(CounterState(row.window_started_at, row.used), 12, AT).remaining == 12
    RateLimitCounter.objects.update(used=5)
    row.delete()  # by hand: it comes back without logins
    assert RateLimitCounter.objects.get(pk=registry.shop.pk).used == 0
    assert RateLimitCounter.objects.get(pk=registry.agent.pk).used == 5


def test_every_trigger_is_there_after_all_migrations_and_is_not_replaced() -> None:
    with CaptureQueriesContext(connection) as queries:
        installed.install(connection)
    words = {query["sql"].split()[0] for query in queries}
    assert words == {"SELECT"}, "no lock on tables that logins and changes use"
    assert dict(triggers()) | dict(triggers("then_")) == installed.names(connection.vendor)
    assert installed.fault(connection) == ""


def triggers(prefix: str = "renew_") -> list[tuple[str, str]]:
    query = {
        "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname, tgrelid::regclass::text FROM pg_trigger"
        " WHERE NOT tgisinternal AND tgenabled = 'O'",
    }
    with connection.cursor() as cursor:
        cursor.execute(query[connection.vendor])
        found = list(cursor.fetchall())
    assert {name.partition("_")[0] for name, _table in found} <= {"renew", "then"}
    return [(name, table) for name, table in found if name.startswith(prefix)]


@pytest.mark.parametrize("table", sorted(DECIDING_COLUMNS))
def test_each_column_decides_a_login_or_is_known_not_to(table: str) -> None:
    describes = {
        "system_users": {
            *("name", "created", "updated", "blocked_by", "blocked_reason"),
            *("last_secret_ends_at", "return_addresses"),
        },
        "taxpayers": {"name", "created_at"},
    }
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    columns = {column.column for column in model._meta.concrete_fields}
    assert columns == describes[table] | set(DECIDING_COLUMNS[table])


def migrate() -> None:
    call_command("migrate", verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_what_is_missing_is_named_and_put_in_place_by_migrate(registry: Registry) -> None:
    before, logged_in = registry.epochs(), registry.shop.pk
    RateLimitCounter.objects.filter(pk=logged_in).update(used=3)
    lost = "renew_epochs_after_update_on_system_users"
    with connection.cursor() as cursor:
        is_sqlite = connection.vendor == "sqlite"
        cursor.execute(f"DROP TRIGGER {lost}" if is_sqlite else f"DROP FUNCTION {lost} CASCADE")
        cursor.execute("DELETE FROM client_usage WHERE system_user_id <> %s", [logged_in])
    (warning,) = check_triggers(databases=["default"])
    assert (warning.id, warning.msg) == ("taxpayers.W001", f"These triggers are missing: {lost}.")
    migrate()
    assert check_triggers(databases=["default"]) == []
    after = registry.epochs()
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values()), "a change may have gone unnoticed"
    assert RateLimitCounter.objects.get(pk=logged_in).used == 3
    assert renewed_by(registry, lambda: registry.sql(SQL["limit"][0])) == {"shop"}


@pytest.mark.django_db(transaction=True)
def test_those_of_another_version_are_replaced_and_no_epoch_with_them(registry: Registry) -> None:
    name, table = next(iter(status_triggers.trigger_names(connection.vendor).items()))
    before = registry.epochs()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(f"CREATE TRIGGER {name} AFTER DELETE ON {table} BEGIN SELECT 1; END")
        else:
            cursor.execute("COMMENT ON FUNCTION renew_epochs(bigint[]) IS 'of an earlier version'")
    assert installed.fault(connection) == "The triggers are those of another version."
    migrate()
    test_every_trigger_is_there_after_all_migrations_and_is_not_replaced()
    assert registry.epochs() == before


@pytest.mark.django_db(transaction=True)
def test_a_later_migration_can_make_a_table_anew(registry: Registry) -> None:
    """On SQLite Django does so when a column changes, and the triggers are in its way."""
    state = MigrationExecutor(connection).loader.project_state()
    change = AlterField("systemuser", "scopes", models.CharField(max_length=300))
    changed = state.clone()
    change.state_forwards("taxpayers", changed)
    if connection.vendor == "sqlite":
        installed.remove(connection)
    with connection.schema_editor(atomic=True) as editor:
        change.database_forwards("taxpayers", editor, state, changed)
    installed.install(connection)
    test_every_trigger_is_there_after_all_migrations_and_is_not_replaced()
    assert renewed_by(registry, lambda: registry.sql(SQL["limit"][0])) == {"shop"}
