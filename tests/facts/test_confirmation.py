"""No login is decided by facts that are out of date: its record confirms them (contract 1)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.http import HttpResponse

from taxpayers.credentials import hash_secret
from taxpayers.facts.values import FactsQuery
from taxpayers.models import RateLimitCounter
from taxpayers.services import block_system_user, unblock_system_user
from tests.endpoint.test_event_loop import login_of, through_django
from tests.support import make
from tests.support.databases import present_url
from tests.support.erp import Erp, claims_of, reason_of
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import now, why
from tests.wire.test_answers import Send, both, committed
from tokens.calls import Call, CountedLogin
from tokens.models import LoginEvent
from tokens.operations.node import this_node
from tokens.store import async_store, django_store as store

pytestmark = pytest.mark.django_db
on_postgresql = pytest.mark.postgresql  # SQLite is in this process: it knows nothing beside it
OWN, ACTING = "issued InvoicingAPI", f"issued InvoicingAPI {SUBMIT} {VIEW}"
# What a login gets before a change and after it; each column: registry/test_epochs.py.
CHANGES = {
    "of its row": (
        *(OWN, "system_user_blocked"),
        "UPDATE system_users SET blocked_at = '{past}', blocked_by = 'x', blocked_reason = 'y'"
        " WHERE id = {user}",
    ),
    "a row is gone": (
        *(OWN, "invalid_credentials"),
        "DELETE FROM credentials WHERE system_user_id = {user}",
    ),
    "of another taxpayer": (
        *(ACTING, "no_permission"),
        "UPDATE taxpayers SET is_active = false WHERE id = {represented}",
    ),
    "new rows": (
        *("no_permission", ACTING),
        "INSERT INTO granted_permissions (taxpayer_id, intermediary_id, valid_from, created_at)"
        " VALUES ({represented}, {intermediary}, '{past}', '{past}');"
        " INSERT INTO granted_permission_codes (grantedpermission_id, permissioncode_id)"
        " SELECT id, 'documents:submit' FROM granted_permissions"
        " WHERE taxpayer_id = {represented} UNION ALL SELECT id, 'documents:view'"
        " FROM granted_permissions WHERE taxpayer_id = {represented}",
    ),
}


def outcome(response: HttpResponse) -> str:
    """The reason, or what the token is for."""
    if response.status_code == 200:
        claims = claims_of(response)
        return " ".join(["issued", claims["scope"], *claims.get("permissions", ())])
    return reason_of(response)


@pytest.mark.parametrize("name", CHANGES)
def test_the_next_login_obeys_a_change_by_sql(name: str, intermediary: Erp) -> None:
    before, after, statements = CHANGES[name]
    user, represented = intermediary.system_user, make.taxpayer()
    if before == ACTING:
        make.permission(taxpayer=represented, intermediary=intermediary.role)
    asked = {} if OWN in (before, after) else {"on_behalf_of": represented.tin}

    def outcomes() -> list[str]:
        return [outcome(intermediary.login(**asked)) for _ in range(2)]

    assert outcomes() == [before] * 2  # and this node knows its client
    keys = {"user": user.pk, "represented": represented.pk, "intermediary": intermediary.role.pk}
    past = f"{now() - timedelta(hours=1):%Y-%m-%d %H:%M:%S}"
    with connection.cursor() as cursor:
        for statement in statements.format(**keys, past=past).split(";"):
            cursor.execute(statement)
    assert outcomes() == [after] * 2


@on_postgresql
def test_facts_from_an_older_copy_of_the_file_are_out_of_date_too(erp: Erp) -> None:
    query = FactsQuery(erp.client_id, hash_secret(erp.client_secret), None)
    facts = this_node().local_facts
    erp.login()
    old = facts.find(query)
    assert old is not None
    block_system_user(system_user=erp.system_user, **why())
    assert outcome(erp.login()) == "system_user_blocked"
    facts.store(query, old)
    assert outcome(erp.login()) == "system_user_blocked"
    unblock_system_user(system_user=erp.system_user, **why())  # as it was, with another epoch
    facts.store(query, old)
    assert erp.login().status_code == 200
    present = facts.find(query)
    assert present is not None
    assert present.client == old.client
    assert present.epoch != old.epoch


@contextmanager
def limit_changes_before_each_count(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """Another session changes the client's limit before its login is counted, if it can."""
    done: list[str] = []
    perform, execute = store.perform, async_store._PostgresqlExecutor.execute
    options = "-c lock_timeout=200ms"
    with psycopg.connect(present_url(), autocommit=True, options=options) as session:

        def change_before(call: Call) -> None:
            if not isinstance(call, CountedLogin):
                return
            try:
                session.execute(
                    "UPDATE system_users SET logins_per_minute = %s WHERE id = %s",
                    (100 + len(done), erp.system_user.pk),
                )
                done.append("changed")
            except psycopg.errors.LockNotAvailable:  # no other session can change it now
                done.append("locked")

        def change_and_perform(call: Call) -> Any:
            change_before(call)
            return perform(call)

        async def change_and_execute(self: Any, calls: Sequence[Call], *others: Any) -> list[Any]:
            change_before(calls[0])
            return await execute(self, calls, *others)

        monkeypatch.setattr(store, "perform", change_and_perform)
        monkeypatch.setattr(async_store._PostgresqlExecutor, "execute", change_and_execute)
        yield done


@on_postgresql
@committed
@both
def test_a_client_that_changes_before_each_record_is_decided_under_a_lock_in_the_end(
    send: Send, erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limit_changes_before_each_count(erp, monkeypatch) as done:
        answer = send(login_of(erp))
    # On the event loop each is counted twice: with others, and in its own statement.
    assert done == ["changed"] * (3 if send is through_django else 6) + ["locked"]
    assert answer.status == 200
    assert answer.headers["X-Rate-Limit-Limit"] == str(100 + len(done) - 2)
    assert LoginEvent.objects.count() == RateLimitCounter.objects.get().used == 1
