"""What is read of a client is what the database has answered, column by column. Pure."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from taxpayers.facts.query import facts_statement
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    FactsQuery,
    IntermediaryFacts,
    PermissionFacts,
    Reading,
    RepresentedFacts,
    StatusFacts,
)
from taxpayers.identifiers import TaxpayerId
from tests.facts.rows import AT, HASHED, HOUR, row

OTHER = TaxpayerId("C2000000002", "R-2")
QUERY = FactsQuery("ci_test_1", HASHED, OTHER)
NO_STATUS = (None, None, None, None)
STATUS = (81, 9, '{"Reports":1,"InvoicingAPI":2}', '{"documents:view":3}')
CLIENT = ClientFacts(
    id=41,
    client_id="ci_test_1",
    taxpayer=TaxpayerId("C1000000001", "R-1"),
    taxpayer_is_active=False,
    scopes=("InvoicingAPI", "Reports"),
    logins_per_minute=12,
    blocked_at=AT - HOUR,
    expires_at=AT + 2 * HOUR,
    intermediary=IntermediaryFacts(is_active=False, active_until=AT + 6 * HOUR),
    token_binding="dpop",
    allowed_permissions=("documents:submit", "documents:view"),
    has_allowed_taxpayers=True,
    only_on_behalf=True,
)
SECRET = CredentialFacts(
    51,
    "7aQ2",
    AT + 3 * HOUR,
    AT - 4 * HOUR,
    '{"kty":"EC"}',
    ("192.0.2.0/24", "2001:db8::/32"),
    is_certificate=False,
)
PERMISSION = PermissionFacts(("documents:view",), AT - 7 * HOUR, AT + 8 * HOUR, AT - 9 * HOUR)
REPRESENTED = RepresentedFacts(OTHER, False, (PERMISSION,), is_allowed=False)
FACTS = Facts(
    CLIENT,
    SECRET,
    REPRESENTED,
    7,
    StatusFacts(81, 9, ("InvoicingAPI", "Reports"), ("documents:view",)),
)


def read(*rows: tuple[Any, ...], query: FactsQuery = QUERY) -> Reading:
    (reading,) = facts_statement([query]).parse(list(rows))
    return reading


def facts_in(*rows: tuple[Any, ...], query: FactsQuery = QUERY) -> Facts:
    facts = read(*rows, query=query).facts
    assert facts is not None
    return facts


def test_each_column_becomes_its_fact() -> None:
    assert read(row(*STATUS)) == Reading(AT, FACTS, (AT - 5 * HOUR, 8))


def test_what_is_true_or_is_not_there_is_read_too() -> None:
    none: dict[str, Any] = dict.fromkeys(("blocked_at", "expires_at", "secret_revoked_at"))
    found = facts_in(
        row(
            *NO_STATUS,
            is_active=True,
            has_allowed_taxpayers=False,
            is_allowed=True,
            only_on_behalf=False,
            **none,
        )
    )
    assert found.status is None
    assert found.client.taxpayer_is_active
    assert not found.client.has_allowed_taxpayers
    assert not found.client.only_on_behalf
    assert (found.client.blocked_at, found.client.expires_at) == (None, None)
    assert found.credential.revoked_at is None
    assert found.represented is not None
    assert found.represented.is_allowed


@pytest.mark.parametrize(
    ("changes", "intermediary"),
    [
        ({"intermediary": None}, None),
        ({"intermediary_is_active": True}, IntermediaryFacts(True, AT + 6 * HOUR)),
        ({"active_until": None}, IntermediaryFacts(False, None)),
    ],
)
def test_the_role_of_the_taxpayer(
    changes: dict[str, Any], intermediary: IntermediaryFacts | None
) -> None:
    assert facts_in(row(*STATUS, **changes)).client.intermediary == intermediary


def test_nothing_is_said_of_another_taxpayer_when_none_is_named() -> None:
    own = replace(QUERY, on_behalf_of=None)
    assert facts_in(row(*STATUS), query=own) == replace(FACTS, represented=None)


@pytest.mark.parametrize("is_active", [True, False, None])
def test_whether_the_represented_taxpayer_is_active_or_there_is_none(
    is_active: bool | None,
) -> None:
    found = facts_in(row(*STATUS, represented_is_active=is_active, permission=None))
    assert found.represented == RepresentedFacts(OTHER, is_active, (), is_allowed=False)


def test_each_permission_has_its_codes_and_its_moments() -> None:
    found = facts_in(
        row(*STATUS),
        row(*STATUS, code="documents:submit"),
        row(*STATUS, permission=72, code=None, valid_from=AT, valid_until=None, revoked_at=None),
    )
    assert found.represented is not None
    assert found.represented.permissions == (
        replace(PERMISSION, codes=("documents:view", "documents:submit")),
        PermissionFacts((), AT, None, None),
    )


def test_moments_without_an_offset_are_in_utc() -> None:
    """As SQLite answers."""
    naive = datetime(2026, 3, 2)  # noqa: DTZ001 - that is the matter of this test
    found = facts_in(row(*STATUS, secret_expires_at=naive, blocked_at=naive, valid_from=naive))
    aware = naive.replace(tzinfo=UTC)
    assert (found.credential.expires_at, found.client.blocked_at) == (aware, aware)
    assert found.represented is not None
    assert found.represented.permissions[0].valid_from == aware


@pytest.mark.parametrize("lookup", [None, "", "sha256$of-another", HASHED.upper()])
def test_nothing_is_known_without_the_very_secret(lookup: str | None) -> None:
    assert read(row(*STATUS, lookup=lookup)) == Reading(AT, None)


def test_many_are_read_at_once_each_for_its_own_query() -> None:
    queries = [replace(QUERY, client_id=f"ci_test_{n}") for n in range(3)]
    statement = facts_statement(queries)
    rows = [row(*STATUS, number=number, client=number) for number in (2, 0)]
    found = statement.parse([*rows, row(*STATUS, number=1, lookup=None)])
    assert [
        each.facts and (each.facts.client.client_id, each.facts.client.id) for each in found
    ] == [("ci_test_0", 0), None, ("ci_test_2", 2)]


def test_what_is_sent_is_the_number_the_names_and_the_taxpayer_of_each() -> None:
    other = replace(QUERY, client_id="ci_test_2", on_behalf_of=None)
    (sent,) = facts_statement([QUERY, other]).parameters
    assert sent == (
        '[{"number":0,"client_id":"ci_test_1","lookup":"sha256$of-the-secret",'
        '"tin":"C2000000002","rob":"R-2"},'
        '{"number":1,"client_id":"ci_test_2","lookup":"sha256$of-the-secret",'
        '"tin":null,"rob":null}]'
    )
