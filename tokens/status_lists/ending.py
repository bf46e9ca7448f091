"""Sets the bits of the indexes whose tokens are no longer good by the registry now (contract 2).

Triggers note which clients have changed (`taxpayers/facts/status_triggers.py`), and each index has
the moment at which it may end without a change. So only what may have changed is looked at, however
many indexes there are: once for all tokens of an index, with the decision of introspection,
`status_of`.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from django.conf import settings
from django.db import OperationalError, connection, transaction

from taxpayers.facts import query
from taxpayers.facts.validity import next_end
from taxpayers.facts.values import Facts
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import EndedStatusIndex, StatusChange, StatusIndex
from taxpayers.rules import required_confirmation
from taxpayers.sql import Row, fetch_through_django
from tokens.access_tokens.status import ACTIVE, TokenFacts, status_of
from tokens.access_tokens.verification import AccessToken

logger = logging.getLogger("tokens.status_lists")

_QUERY = f"""
SELECT {{clock}}, {query.FACT_COLUMNS}, u.client_id, q.system_user_id, q.check_at,
    q.subject_tin, q.subject_rob, q.actor, q.scopes, q.permissions
FROM (SELECT x."index" AS number, x.system_user_id, x.secret_id, x.check_at, x.actor,
        x.tin AS subject_tin, x.rob AS subject_rob,
        CASE WHEN x.actor <> '' THEN x.tin END AS tin,
        CASE WHEN x.actor <> '' THEN x.rob END AS rob,
        CAST(x.scopes AS text) AS scopes, CAST(x.permissions AS text) AS permissions
    FROM status_indexes x WHERE x."index" IN ({{indexes}})) AS q
LEFT JOIN system_users u ON u.id = q.system_user_id
LEFT JOIN credentials s ON s.id = q.secret_id AND s.system_user_id = u.id{query.CREDENTIAL_FITS}
{query.FACT_JOINS}"""
_POSTGRESQL = _QUERY.format(
    clock="statement_timestamp()",
    indexes="SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(%s AS json))",
)
_SQLITE = _QUERY.format(clock="NULL", indexes="SELECT value FROM json_each(%s)")
_NUMBER, _SECRET_ID, _OWN = 1, 10, slice(-8, None)


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """`check_at` is when it was to be checked, `next_check_at` when it is to be checked again."""

    index: int
    system_user_id: int
    check_at: datetime | None
    is_good: bool
    next_check_at: datetime | None = None


def check_indexes(indexes: Collection[int]) -> Iterator[CheckedIndex]:
    """Decides about each of these that is in use, now. Raises django.db.DatabaseError.

    What cannot be decided is not good: its tokens end, and the next login gets another index.
    """
    sql = _POSTGRESQL if connection.vendor == "postgresql" else _SQLITE
    of_index: dict[int, list[Row]] = defaultdict(list)
    for row in fetch_through_django(sql, [msgspec.json.encode(list(indexes)).decode()]):
        of_index[row[_NUMBER]].append(row)
    for index, rows in of_index.items():
        try:
            checked = _check(index, rows)
        except Exception:
            logger.exception("a status index cannot be checked: it ends", extra={"index": index})
            _client_id, client, check_at, *_others = rows[0][_OWN]
            checked = CheckedIndex(index, client, query.aware_or_none(check_at), is_good=False)
        yield checked


def _check(index: int, rows: list[Row]) -> CheckedIndex:
    row = rows[0]
    at: datetime = row[0] or datetime.now(UTC)
    client_id, client, check_at, tin, rob, actor, scopes, permissions = row[_OWN]
    check_at = query.aware_or_none(check_at)
    status = query.status_facts(index, 0, scopes, permissions)
    if row[_SECRET_ID] is None or status is None:  # the client is gone, or its secret
        return CheckedIndex(index, client, check_at, is_good=False)
    subject = TaxpayerId(tin, rob)
    facts: Facts = query.facts_of(client_id, subject if actor else None, rows)
    token = AccessToken(
        subject=subject,
        actor=actor or None,
        client_id=client_id,
        jti="",
        scopes=status.scopes,
        permissions=status.permissions,
        issued_at=at,
        expires_at=at,
        # A trigger ends the index of tokens that are not bound as the client's must be.
        confirmation=required_confirmation(facts),
    )
    now = status_of(token, TokenFacts(facts, has_index=True), known_scopes=settings.SCOPES, at=at)
    return CheckedIndex(index, client, check_at, now == ACTIVE, next_end(facts, at))


_BATCH = 1_000
_CHECKED_AT_ONCE = 500
# One process at a time: so the rows of ended indexes are committed in the order of their numbers.
_ONLY_ONE = "SELECT pg_try_advisory_xact_lock(7266921504)"
# Who changes a client for longer than this makes only the indexes of that client wait.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout TO '50ms'"


def end_indexes(at: datetime) -> None:
    """Ends what is no longer good, a batch of it. `at`: the database's clock.

    Does nothing while another process does it. Raises django.db.DatabaseError.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            if fetch_through_django(_ONLY_ONE, ()) == [(False,)]:
                return
            with connection.cursor() as cursor:
                cursor.execute(_LOCK_TIMEOUT)
        noted = StatusChange.objects.filter(system_user_id__isnull=False).order_by("pk")
        clients = {row.pk: row.system_user_id or 0 for row in noted[:_BATCH]}
        waiting = _end_or_keep(_checked(set(clients.values()), at))
        done = [pk for pk, client in clients.items() if client not in waiting]
        StatusChange.objects.filter(pk__in=done).delete()
        _set_bits(at)


def _checked(clients: Iterable[int], at: datetime) -> dict[int, list[CheckedIndex]]:
    """The indexes of these clients, and those that time may have ended, by their client."""
    indexes = set(
        StatusIndex.objects.filter(system_user_id__in=clients).values_list("pk", flat=True)
    )
    due = StatusIndex.objects.filter(check_at__lt=at).order_by("check_at")
    indexes.update(due.values_list("pk", flat=True)[:_BATCH])
    of_client = defaultdict(list)
    for some in _parts(sorted(indexes), _CHECKED_AT_ONCE):
        for checked in check_indexes(some):
            of_client[checked.system_user_id].append(checked)
    return of_client


def _end_or_keep(of_client: dict[int, list[CheckedIndex]]) -> set[int]:
    """Returns the clients that another session is changing: they are tried again."""
    all_good = {c: found for c, found in of_client.items() if all(one.is_good for one in found)}
    # Nearly all of them are, and one round trip is enough for all that are not locked.
    if _end_or_keep_at_once([one for found in all_good.values() for one in found]):
        of_client = {c: found for c, found in of_client.items() if c not in all_good}
    return {client for client in sorted(of_client) if not _end_or_keep_at_once(of_client[client])}


def _end_or_keep_at_once(checked: list[CheckedIndex]) -> bool:
    """Whether it was done: all of it, or nothing where another session has locked a row."""
    moved = [one for one in checked if one.is_good and one.check_at != one.next_check_at]
    try:
        with transaction.atomic():
            _delete([one.index for one in checked if not one.is_good])
            _set_next_checks(moved)
    except OperationalError:
        return False
    return True


def _set_next_checks(moved: list[CheckedIndex]) -> None:
    # Not if a login has used the index since, for tokens that may do more.
    sql = (
        'UPDATE status_indexes SET check_at = %s WHERE "index" = %s'
        " AND (check_at = %s OR (check_at IS NULL AND %s))"
    )
    stored = connection.ops.adapt_datetimefield_value
    if moved:
        with connection.cursor() as cursor:
            cursor.executemany(
                sql,
                [
                    (stored(one.next_check_at), one.index, stored(one.check_at), not one.check_at)
                    for one in moved
                ],
            )


def _delete(indexes: list[int]) -> None:
    if not indexes:
        return
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT end_status_indexes(%s)", [indexes])
    else:
        StatusIndex.objects.filter(pk__in=indexes).delete()


def _set_bits(at: datetime) -> None:
    noted = StatusChange.objects.filter(ended_index__isnull=False).order_by("pk")
    ended = {row.pk: row.ended_index or 0 for row in noted}
    rows = [EndedStatusIndex(index=index, ended_at=at) for index in dict.fromkeys(ended.values())]
    EndedStatusIndex.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)
    for some in _parts(list(ended), _BATCH):
        StatusChange.objects.filter(pk__in=some).delete()


def _parts(numbers: list[int], size: int) -> Iterator[list[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
