"""The random interleavings find what they are for: each fault, put in on purpose."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from django.db import connection

from proofs.interleavings.changes import wholesale
from proofs.interleavings.run import RunFailed, run
from taxpayers.facts.epochs import postgresql as epochs
from taxpayers.facts.epochs.row import trigger_name
from taxpayers.facts.local import SharedFacts
from taxpayers.facts.values import FactsQuery
from tokens.operations import login
from tokens.store import lanes, locked_clients, postgresql, postgresql_buckets
from tokens.store.postgresql_event import IS_RECENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.slow]

STEPS, SEED = 40_000, 1
Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]


def failure_of_a_run(folder: Path, often: Collection[str] = ()) -> str:
    with pytest.raises(RunFailed) as failed:
        run(SEED, STEPS, folder, often)
    return str(failed.value)


# --- Faults of the login and its statements -------------------------------------------------------

FAULTS: dict[str, Fault] = {}


def fault(put_in: Fault) -> Fault:
    FAULTS[put_in.__name__] = put_in
    return put_in


def replace_in_count(patch: Patch, old: str, new: str) -> None:
    assert old in postgresql._COUNT
    patch.setattr(postgresql, "_COUNT", postgresql._COUNT.replace(old, new))


@fault
def a_count_that_ignores_the_epoch(patch: Patch) -> None:
    replace_in_count(patch, "AND o.epoch = sent.epoch", "")


@fault
def refusals_without_confirmation(patch: Patch) -> None:
    replace_in_count(patch, "o.epoch = sent.epoch", "(o.epoch = sent.epoch OR sent.reason <> '')")


@fault
def tokens_without_confirmation(patch: Patch) -> None:
    replace_in_count(patch, "o.epoch = sent.epoch", "(o.epoch = sent.epoch OR sent.reason = '')")


@fault
def a_count_that_waits_for_locked_rows(patch: Patch) -> None:
    replace_in_count(patch, " SKIP LOCKED", "")


@fault
def logins_that_are_sent_away_from_a_locked_client(patch: Patch) -> None:
    """To decide them again in the hope that the lock is gone: some never meet it free."""
    patch.setattr(locked_clients, "may_be_locked", lambda result: False)


@fault
def a_count_that_ignores_the_limit(patch: Patch) -> None:
    replace_in_count(patch, 'c.used < locked."limit"', "true")


@fault
def a_count_of_several_that_ignores_the_limit(patch: Patch) -> None:
    replace_in_count_of_any(patch, 'used_then + number <= "limit"', 'used_then < "limit"')


@fault
def a_count_of_several_that_counts_one(patch: Patch) -> None:
    replace_in_count_of_any(patch, "max(used) AS used", "min(used) AS used")


@fault
def windows_that_never_end(patch: Patch) -> None:
    replace_in_count(patch, postgresql._IS_OPEN, "true")


@fault
def windows_that_end_at_once(patch: Patch) -> None:
    replace_in_count(patch, postgresql._IS_OPEN, "false")


@fault
def decisions_stored_long_after(patch: Patch) -> None:
    replace_in_count(patch, IS_RECENT, "true")


def replace_in_count_of_any(patch: Patch, old: str, new: str) -> None:
    assert old in postgresql._COUNT_ANY
    patch.setattr(postgresql, "_COUNT_ANY", postgresql._COUNT_ANY.replace(old, new))


@fault
def a_first_token_that_ignores_the_epoch(patch: Patch) -> None:
    replace_in_count_of_any(patch, "AND present_epoch = epoch", "")


@fault
def a_first_token_whose_index_is_not_stored(patch: Patch) -> None:
    replace_in_count_of_any(patch, "WHERE tin IS NOT NULL AND", "WHERE false AND")
    replace_in_count_of_any(patch, "tin IS NULL OR holder IS NOT NULL", "true")


@fault
def a_first_token_whose_index_another_one_has_taken(patch: Patch) -> None:
    replace_in_count_of_any(patch, "tin IS NULL OR holder IS NOT NULL", "true")


@fault
def tokens_whose_index_is_not_confirmed(patch: Patch) -> None:
    replace_in_count(patch, postgresql._HAS_INDEX, "true")


@fault
def changes_that_no_list_learns_of(patch: Patch) -> None:
    execute("DROP TRIGGER then_check_status_after_update_on_client_usage ON client_usage")


@fault
def tokens_of_a_deleted_client_that_comes_back(patch: Patch) -> None:
    execute("DROP TRIGGER then_end_status_after_delete_on_system_users ON system_users")


@fault
def rejected_requests_that_are_not_counted(patch: Patch) -> None:
    sql = postgresql_buckets._COUNT_REJECTIONS
    assert "b.failures + 1" in sql
    changed = sql.replace("b.failures + 1", "b.failures")
    patch.setattr(postgresql_buckets, "_COUNT_REJECTIONS", changed)


@fault
def several_failures_of_a_caller_in_a_batch(patch: Patch) -> None:
    patch.setattr(lanes, "rows_of", lambda call: ())


@fault
def a_decision_repeated_from_the_old_facts(patch: Patch) -> None:
    """The reload is skipped."""
    read = login._read

    def read_once(one, start):  # type: ignore[no-untyped-def]
        known = one.node.recall(one.query)
        return known or (yield from read(one, start))

    patch.setattr(login, "_read", read_once)


def name_entries_by(patch: Patch, name: Callable[[FactsQuery], str]) -> None:
    patch.setattr(SharedFacts, "_name", lambda self, query: name(query).encode())


@fault
def local_facts_that_ignore_the_taxpayer(patch: Patch) -> None:
    name_entries_by(patch, lambda query: f"{query.client_id} {query.lookup}")


@fault
def local_facts_that_ignore_the_secret(patch: Patch) -> None:
    name_entries_by(patch, lambda query: f"{query.client_id} {query.on_behalf_of}")


@fault
def local_facts_that_ignore_the_rob_number(patch: Patch) -> None:
    name_entries_by(
        patch,
        lambda query: (
            f"{query.client_id} {query.lookup} {query.on_behalf_of and query.on_behalf_of.tin}"
        ),
    )


@fault
def epochs_that_count(patch: Patch) -> None:
    """A backup brings their values back."""
    body = epochs._FUNCTIONS["renew_epochs"]
    assert "epoch = DEFAULT" in body
    execute(
        f"CREATE OR REPLACE FUNCTION renew_epochs{body}".replace(
            "epoch = DEFAULT", "epoch = epoch + 1"
        )
    )


# The changes without which a fault has no consequence: these are made often.
NEEDED = {
    "epochs_that_count": ["restore_backup", "block", "unblock"],
    "tokens_whose_index_is_not_confirmed": ["restore_backup"],
    "tokens_of_a_deleted_client_that_comes_back": ["load_copy", "swap_client_ids"],
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_interleavings_find(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    FAULTS[name](monkeypatch)
    failure = failure_of_a_run(tmp_path, often=NEEDED.get(name, ()))
    assert f"seed {SEED}, step " in failure


# --- Triggers -------------------------------------------------------------------------------------


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def drop(table: str, event: str) -> None:
    execute(f"DROP TRIGGER {trigger_name(table, event)} ON {table}")


def empty_alone(patch: Patch, table: str) -> None:
    """A TRUNCATE is always of this table and those that refer to it."""
    patch.setattr(wholesale, "CASCADE", {table: wholesale.CASCADE[table]})


# To empty these also empties tables that refer to them, and those have a trigger as well.
NOT_ALONE = ("taxpayers", "intermediaries", "system_users", "granted_permissions")
# No client has used this secret before, so nobody has facts of it.
WITHOUT_CONSEQUENCE = {("credentials", "INSERT")}
# Each other trigger, and the changes that need it: these are made often.
FOUND = {
    ("credentials", "UPDATE"): ["set_secret"],
    ("credentials", "DELETE"): ["delete_secret", "issue_secret"],
    ("credentials", "TRUNCATE"): ["truncate"],
    ("client_usage", "DELETE"): ["delete_counter"],
    ("client_usage", "TRUNCATE"): ["truncate_counters"],
    ("granted_permissions", "INSERT"): ["grant_without_codes", "delete_permission"],
    ("granted_permissions", "UPDATE"): ["set_permission"],
    ("granted_permissions", "DELETE"): ["delete_permission", "grant_permission"],
    ("granted_permission_codes", "INSERT"): ["add_code"],
    ("granted_permission_codes", "UPDATE"): ["replace_code", "add_code"],
    ("granted_permission_codes", "DELETE"): ["delete_code", "add_code"],
    ("granted_permission_codes", "TRUNCATE"): ["truncate"],
    ("intermediaries", "INSERT"): ["register_intermediary", "delete_intermediary"],
    ("intermediaries", "UPDATE"): ["set_intermediary"],
    ("intermediaries", "DELETE"): ["delete_intermediary", "register_intermediary"],
    ("system_users", "INSERT"): ["register_client"],
    ("system_users", "UPDATE"): ["block", "unblock"],
    ("system_users", "DELETE"): ["delete_client", "register_client"],
    ("taxpayers", "UPDATE"): ["activate_taxpayer", "deactivate_taxpayer"],
    ("taxpayers", "DELETE"): ["load_taxpayer_again"],
}


def test_each_trigger_is_among_those_that_are_dropped_or_needs_no_run() -> None:
    others = WITHOUT_CONSEQUENCE | {(table, "TRUNCATE") for table in NOT_ALONE}
    assert set(FOUND) == set(epochs.TRIGGERS) - others


@pytest.mark.parametrize(("table", "event"), FOUND)
def test_the_interleavings_find_a_dropped_trigger(
    table: str, event: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    drop(table, event)
    if event == "TRUNCATE" and table in wholesale.CASCADE:
        empty_alone(monkeypatch, table)
    failure = failure_of_a_run(tmp_path, often=FOUND[table, event])
    assert f"seed {SEED}, step " in failure


@pytest.mark.parametrize("table", NOT_ALONE)
@pytest.mark.parametrize("is_dropped", [True, False])
def test_the_interleavings_find_the_last_trigger_of_a_truncate(
    table: str, is_dropped: bool, tmp_path: Path, monkeypatch: Patch
) -> None:
    empty_alone(monkeypatch, table)
    for other in wholesale.CASCADE[table]:
        if other != table or is_dropped:
            drop(other, "TRUNCATE")
    if is_dropped:
        assert f"seed {SEED}, step " in failure_of_a_run(tmp_path, often=["truncate"])
    else:
        run(SEED, STEPS // 8, tmp_path, often=["truncate"])
