"""Logins while the database changes under them: columns of another type, connections that die."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from socket import socketpair

import pytest
from django.db import NotSupportedError, connection, connections, transaction
from django.http import HttpResponse

from taxpayers.credentials import hash_secret, new_client_secret
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from tests.support.databases import another_session
from tests.support.erp import Erp, new_erp, post
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent
from tokens.store.django_store import perform

# SQLite prepares nothing beforehand, and has no server that could end a connection.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

Ask = Callable[[Erp], HttpResponse]
USED_GROWS = "ALTER TABLE client_usage ALTER COLUMN used TYPE bigint"
WRONG_SECRET = new_client_secret("test")
KINDS: dict[str, tuple[Ask, int]] = {
    "": (lambda erp: erp.login(), 200),
    "malformed_request": (lambda erp: post("grant_type=%"), 400),
    "invalid_credentials": (lambda erp: erp.login(client_secret=WRONG_SECRET), 400),
    "invalid_scope": (lambda erp: erp.login(scope="Unknown"), 400),
}
every_kind = pytest.mark.parametrize("reason", KINDS)


def execute_elsewhere(sql: str) -> None:
    with another_session() as other, other.cursor() as cursor:
        cursor.execute(sql)


def terminate_all_sessions() -> None:
    """Returns when they have ended."""
    execute_elsewhere(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def statuses(ask: Ask, erp: Erp, times: int = 3) -> list[int]:
    return [ask(erp).status_code for _ in range(times)]


def recorded() -> list[str]:
    """The reason of each login event."""
    return list(LoginEvent.objects.values_list("reason", flat=True))


# --- Columns --------------------------------------------------------------------------------------
def test_the_orm_prepares_nothing_that_a_changed_column_could_break() -> None:
    at = datetime.now(UTC)
    for _ in range(7):  # psycopg's own threshold is 5
        read_key_ring(at)
    execute_elsewhere("ALTER TABLE signing_keys ALTER COLUMN generation TYPE bigint")
    try:
        assert read_key_ring(at).keys
    finally:
        execute_elsewhere("ALTER TABLE signing_keys ALTER COLUMN generation TYPE integer")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE system_users ALTER COLUMN scopes TYPE text",
        "ALTER TABLE credentials ALTER COLUMN hint TYPE text",
        "ALTER TABLE login_events ALTER COLUMN detail TYPE text",
        "ALTER TABLE client_usage ALTER COLUMN window_started_at TYPE timestamptz(3)",
        USED_GROWS,
        "ALTER TABLE login_events ADD COLUMN note text NOT NULL DEFAULT ''",
    ],
)
def test_a_column_that_changes_costs_no_login_and_no_record(erp: Erp, change: str) -> None:
    new = iter([new_erp() for _ in range(6)])

    def log_in(erp: Erp) -> list[int]:
        """A client that this node knows, and one whose facts it reads."""
        return [erp.login().status_code, next(new).login().status_code]

    assert [log_in(erp) for _ in range(3)] == [[200, 200]] * 3  # all is prepared by now
    execute_elsewhere(change)
    assert [log_in(erp) for _ in range(3)] == [[200, 200]] * 3
    assert RateLimitCounter.objects.get(pk=erp.system_user.pk).used == 6
    assert LoginEvent.objects.count() == 12


def test_in_a_transaction_a_changed_column_fails_once(erp: Erp) -> None:
    query = FactsQuery(erp.client_id, hash_secret(erp.client_secret), None)

    def used() -> int:
        counter = perform(query).counter
        assert counter is not None
        return int(counter[1])

    assert statuses(Erp.login, erp) == [200] * 3
    assert [used(), used()] == [3, 3]
    execute_elsewhere(USED_GROWS)
    with transaction.atomic():
        with pytest.raises(NotSupportedError), transaction.atomic():
            used()
        assert used() == 3
    execute_elsewhere("ALTER TABLE client_usage ALTER COLUMN used TYPE integer")
    with pytest.raises(NotSupportedError), transaction.atomic():
        used()
    assert statuses(Erp.login, erp) == [200] * 3


# --- Connections ----------------------------------------------------------------------------------
@every_kind
def test_sessions_that_the_server_ended_cost_no_answer(erp: Erp, reason: str) -> None:
    ask, status = KINDS[reason]
    assert statuses(ask, erp) == [status] * 3
    for _ in range(2):
        terminate_all_sessions()
        assert statuses(ask, erp, 1) == [status]
    assert recorded() == [reason] * 5


@every_kind
def test_a_session_that_ends_while_it_writes_costs_one_answer(erp: Erp, reason: str) -> None:
    """The statement may have been executed, so it is not sent again."""
    ask, status = KINDS[reason]
    assert statuses_while_a_session_ends("login_events", ask, erp) == [status, 503, status]
    assert recorded() == [reason] * 2


def test_a_session_that_ends_while_it_reads_costs_no_answer(erp: Erp) -> None:
    new = iter([new_erp() for _ in range(3)])  # whose facts this node has yet to read
    statuses = statuses_while_a_session_ends("system_users", lambda _: next(new).login(), erp)
    assert statuses == [200] * 3
    assert recorded() == [""] * 3


def test_a_connection_that_was_closed_is_not_taken_for_the_socket_with_its_number(erp: Erp) -> None:
    ask, status = KINDS["malformed_request"]
    assert statuses(ask, erp) == [status] * 3
    number = connection.connection.fileno()
    connection.connection.close()
    with ExitStack() as stack:
        sockets = [stack.enter_context(each) for _ in range(9) for each in socketpair()]
        assert number in [each.fileno() for each in sockets]
        assert statuses(ask, erp) == [status] * 3


def statuses_while_a_session_ends(table: str, ask: Ask, erp: Erp) -> list[int]:
    """Of three requests on one connection, which ends as the second one waits for the table."""

    def answer() -> int:
        return ask(erp).status_code

    with ThreadPoolExecutor(1) as thread, another_session() as other:
        before = thread.submit(answer).result(30)
        other.set_autocommit(False)
        other.cursor().execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        waiting = thread.submit(answer)
        wait_until_a_session_waits()
        execute_elsewhere(f"SELECT pg_terminate_backend(pid, 10000) {WAITING}")
        other.rollback()
        answers = [before, waiting.result(30), thread.submit(answer).result(30)]
        thread.submit(connections.close_all).result(30)
    return answers


WAITING = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def wait_until_a_session_waits() -> None:
    deadline = time.monotonic() + 20
    with connection.cursor() as cursor:
        while cursor.execute(f"SELECT 1 {WAITING}").fetchone() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
