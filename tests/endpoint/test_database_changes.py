"""Logins while the database changes under them: columns of another type, connections that die."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.http import HttpResponse

from taxpayers.credentials import new_client_secret
from taxpayers.models import RateLimitCounter
from tests.support.databases import another_session
from tests.support.erp import Erp, new_erp, post
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent

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


@every_kind
def test_sessions_that_the_server_ended_cost_no_answer(erp: Erp, reason: str) -> None:
    ask, status = KINDS[reason]
    assert statuses(ask, erp) == [status] * 3
    for _ in range(2):
        terminate_all_sessions()
        assert statuses(ask, erp, 1) == [status]
    assert recorded() == [reason] * 5
