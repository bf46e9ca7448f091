"""Are the tokens of an index still good, by the registry as it is now? (contract 2).

Asked once for all tokens of an index, with the decision of introspection: `status_of`.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from django.conf import settings
from django.db import connection

from taxpayers.facts.query import (
    CREDENTIAL_FITS,
    FACT_COLUMNS,
    FACT_JOINS,
    aware_or_none,
    facts_of,
    status_facts,
)
from taxpayers.facts.validity import next_end
from taxpayers.facts.values import Facts
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import required_confirmation
from taxpayers.sql import Row, fetch_through_django
from tokens.access_tokens.status import ACTIVE, TokenFacts, status_of
from tokens.access_tokens.verification import AccessToken

logger = logging.getLogger("tokens.status_lists")

_QUERY = f"""
SELECT {{clock}}, {FACT_COLUMNS}, u.client_id, q.system_user_id, q.check_at,
    q.subject_tin, q.subject_rob, q.actor, q.scopes, q.permissions
FROM (SELECT x."index" AS number, x.system_user_id, x.secret_id, x.check_at, x.actor,
        x.tin AS subject_tin, x.rob AS subject_rob,
        CASE WHEN x.actor <> '' THEN x.tin END AS tin,
        CASE WHEN x.actor <> '' THEN x.rob END AS rob,
        CAST(x.scopes AS text) AS scopes, CAST(x.permissions AS text) AS permissions
    FROM status_indexes x WHERE x."index" IN ({{indexes}})) AS q
LEFT JOIN system_users u ON u.id = q.system_user_id
LEFT JOIN credentials s ON s.id = q.secret_id AND s.system_user_id = u.id{CREDENTIAL_FITS}
{FACT_JOINS}"""
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
            checked = CheckedIndex(index, client, aware_or_none(check_at), is_good=False)
        yield checked


def _check(index: int, rows: list[Row]) -> CheckedIndex:
    row = rows[0]
    at: datetime = row[0] or datetime.now(UTC)
    client_id, client, check_at, tin, rob, actor, scopes, permissions = row[_OWN]
    check_at, status = aware_or_none(check_at), status_facts(index, 0, scopes, permissions)
    if row[_SECRET_ID] is None or status is None:  # the client is gone, or its secret
        return CheckedIndex(index, client, check_at, is_good=False)
    subject = TaxpayerId(tin, rob)
    facts: Facts = facts_of(client_id, subject if actor else None, rows)
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
