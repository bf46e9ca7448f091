"""What is asked and read of a client and of a token, column by column. Pure."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from jwt.utils import base64url_encode
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
from tokens.calls import TokenQuery
from tokens.store.token_query import ApiFacts, TokenReading, token_query, token_statement

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HASHED = "sha256$of-the-secret"

# A row as a database answers, in the order of `FACT_COLUMNS`, behind the clock: each column has a
# value that no other one has.
COLUMNS: dict[str, Any] = {
    "clock": AT,
    "number": 0,
    "client": 41,
    "scopes": "InvoicingAPI Reports",
    "logins_per_minute": 12,
    "blocked_at": AT - 1 * HOUR,
    "expires_at": AT + 2 * HOUR,
    "tin": "C1000000001",
    "rob": "R-1",
    "is_active": False,
    "secret": 51,
    "lookup": HASHED,
    "hint": "7aQ2",
    "secret_expires_at": AT + 3 * HOUR,
    "secret_revoked_at": AT - 4 * HOUR,
    "epoch": 7,
    "window_started_at": AT - 5 * HOUR,
    "used": 8,
    "intermediary": 61,
    "intermediary_is_active": False,
    "active_until": AT + 6 * HOUR,
    "represented_is_active": False,
    "permission": 71,
    "valid_from": AT - 7 * HOUR,
    "valid_until": AT + 8 * HOUR,
    "revoked_at": AT - 9 * HOUR,
    "code": "documents:view",
    "public_jwk": '{"kty":"EC"}',
    "token_binding": "dpop",
    "allowed_networks": "192.0.2.0/24 2001:db8::/32",
    "allowed_permissions": "documents:submit documents:view",
    "has_allowed_taxpayers": True,
    "is_allowed": False,
    "only_on_behalf": True,
}


def row(*more: Any, **changes: Any) -> tuple[Any, ...]:
    """With these differences; `more` are the columns of another statement, at its end."""
    assert changes.keys() <= COLUMNS.keys()
    return (*(COLUMNS | changes).values(), *more)


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
    changes: dict[str, Any] = dict.fromkeys(("blocked_at", "expires_at", "secret_revoked_at"))
    changes |= {"is_active": True, "is_allowed": True}
    changes |= {"has_allowed_taxpayers": False, "only_on_behalf": False}
    found = facts_in(row(*NO_STATUS, **changes))
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
    statement = facts_statement([replace(QUERY, client_id=f"ci_test_{n}") for n in range(3)])
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


# --- A token, and the API that asks about it ------------------------------------------------------


JTI = UUID("01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f")
API_HASHED = "sha256$of-the-api"
API = ApiFacts(
    "ca_test_1",
    "Invoicing",
    "InvoicingAPI",
    False,
    CredentialFacts(91, "x8Qz", AT + HOUR, AT - HOUR),
)
INDEX = 2**20 + 7
TOKEN_QUERY = TokenQuery(JTI, OTHER, INDEX, "ca_test_1", API_HASHED)
NOTHING = TokenQuery(None, None, None)


def token_of(claims: Any) -> str:
    """A text in three parts; it is not signed."""
    return f"e30.{base64url_encode(json.dumps(claims).encode()).decode()}.x"


def claims_of(tin: str = OTHER.tin, rob: str = OTHER.rob, **changes: Any) -> dict[str, Any]:
    right = {"jti": str(JTI), "taxpayer": {"tin": tin, "rob": rob}, "act": {"sub": "D1"}}
    right |= {"status": {"status_list": {"uri": "https://x/status/1", "idx": 7}}}
    return {name: value for name, value in (right | changes).items() if value is not None}


def asked(claims: Any) -> tuple[UUID | None, TaxpayerId | None]:
    query = token_query(token_of(claims), "ca_test_1", API_HASHED)
    assert (query.client_id, query.lookup) == ("ca_test_1", API_HASHED)
    return query.jti, query.represented


@pytest.mark.parametrize("length", range(4))
def test_a_token_is_looked_up_by_its_id_and_its_taxpayer(length: int) -> None:
    """Whatever the length of its payload: base64 has a rest of 0, 1 or 2."""
    assert asked(claims_of(more="x" * length)) == (JTI, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "e30", "e30.", "e30.e30.e30", "a.!.b", "e30.W10.x", ".", "..", "\0", "é.é.é"),
        *(f"e30.{base64url_encode(payload).decode()}.x" for payload in (b"[" * 20_000, b"\xff")),
        *(token_of(claims_of("\ud800")), token_of(claims_of(taxpayer=[]))),
    ],
)
def test_what_is_no_token_finds_nothing(text: str) -> None:
    assert token_query(text, "ca_test_1", API_HASHED) == replace(
        NOTHING, client_id="ca_test_1", lookup=API_HASHED
    )


@pytest.mark.parametrize("jti", ["", "x" * 36, "\0", 1, JTI.hex, f"{{{JTI}}}", f"urn:uuid:{JTI}"])
def test_an_id_of_another_form_is_none(jti: Any) -> None:
    assert asked(claims_of(jti=jti))[0] is None


@pytest.mark.parametrize(
    ("tin", "rob", "is_sent"),
    [
        ("C" * 64, "R" * 64, True),
        ("C" * 65, "", False),
        ("C1", "R" * 65, False),
        ("C\0", "", False),
        ("C1", "R\n", False),
        *(("Cé", "", False), ("9" * 999, "", False)),
    ],
)
def test_only_a_name_that_a_database_takes_is_sent(tin: str, rob: str, is_sent: bool) -> None:
    assert asked(claims_of(tin, rob)) == (JTI, TaxpayerId(tin, rob) if is_sent else None)


@pytest.mark.parametrize(
    ("uri", "idx", "index"),
    [
        ("https://x/status/1", 7, INDEX),
        ("/status/8796093022207", 2**20 - 1, 2**63 - 1),
        ("/status/8796093022208", 0, None),
        ("/status/" + "9" * 5_000, 0, None),
        ("/status/0", -1, None),
        ("/status/x", 0, None),
        ("/status/0", "0", None),
        (0, 0, None),
    ],
)
def test_only_an_index_that_a_database_takes_is_sent(uri: Any, idx: Any, index: int | None) -> None:
    """A token that names no index was never ours, so nothing is looked up."""
    status = {"status_list": {"uri": uri, "idx": idx}}
    query = token_query(token_of(claims_of(status=status)))
    assert query == (NOTHING if index is None else TokenQuery(JTI, OTHER, index))


def test_what_is_sent_to_the_database() -> None:
    (sent,) = token_statement([TOKEN_QUERY, NOTHING]).parameters
    assert sent == (
        f'[{{"number":0,"client_id":"ca_test_1","lookup":"{API_HASHED}","jti":"{JTI}",'
        f'"tin":"C2000000002","rob":"R-2","status_index":{INDEX}}},'
        '{"number":1,"client_id":null,"lookup":null,"jti":null,"tin":null,"rob":null,'
        '"status_index":null}]'
    )


OF_API: dict[str, Any] = {
    "client_id": "ca_test_1",
    "name": "Invoicing",
    "audience": "InvoicingAPI",
    "is_active": False,
    "secret": 91,
    "lookup": API_HASHED,
    "hint": "x8Qz",
    "expires_at": AT + HOUR,
    "revoked_at": AT - HOUR,
    "revoked_jti": JTI,
    "compromised_at": None,
    "index": INDEX,
    "of_client": "ci_test_1",
}


def read_token(query: TokenQuery = TOKEN_QUERY, facts: Any = None, **changes: Any) -> TokenReading:
    assert changes.keys() <= OF_API.keys()
    found = row(*(OF_API | changes).values(), **(facts or {}))
    (reading,) = token_statement([query]).parse([found])
    return reading


def test_each_column_of_a_token_and_its_api_becomes_its_fact() -> None:
    reading = read_token()
    assert (reading.at, reading.caller) == (AT, API)
    assert (reading.token.is_revoked, reading.token.key_is_compromised) == (True, False)
    login = reading.token.login
    assert login is not None
    assert (login.client.client_id, login.client.id, login.credential.id) == ("ci_test_1", 41, 51)
    assert login.represented is not None
    assert login.represented.taxpayer == OTHER


def test_a_token_whose_index_was_taken_away_has_ended() -> None:
    assert [read_token(index=index).token.has_index for index in (INDEX, 0, None)] == [
        True,
        True,
        False,
    ]


def test_a_compromised_key_is_no_revoked_token() -> None:
    token = read_token(revoked_jti=None, compromised_at=AT).token
    assert (token.is_revoked, token.key_is_compromised) == (False, True)


def test_without_a_secret_that_it_was_issued_for_there_is_no_login() -> None:
    assert read_token(facts={"secret": None}).token.login is None


@pytest.mark.parametrize(
    "changes", [{"lookup": "sha256$of-another"}, {"lookup": None}, {"secret": None}]
)
def test_without_the_very_secret_there_is_no_caller(changes: dict[str, Any]) -> None:
    assert read_token(**changes).caller is None


def test_many_tokens_are_read_at_once_each_for_its_own_query() -> None:
    queries = [TOKEN_QUERY, NOTHING]
    rows = [row(*OF_API.values(), number=number, client=number) for number in (1, 0)]
    found = token_statement(queries).parse(rows)
    assert [one.token.login and one.token.login.client.id for one in found] == [0, 1]
    assert [one.caller for one in found] == [API, None]
