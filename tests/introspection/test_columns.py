"""What is asked and read of a token and of the API that asks, column by column. Pure."""

import json
from typing import Any
from uuid import UUID

import pytest
from jwt.utils import base64url_encode
from msgspec.structs import replace

from taxpayers.facts.values import CredentialFacts
from taxpayers.identifiers import TaxpayerId
from tests.facts.rows import AT, HOUR, row
from tokens.calls import TokenQuery
from tokens.store.token_query import ApiFacts, TokenReading, token_query, token_statement

JTI = UUID("01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f")
OTHER = TaxpayerId("C2000000002", "R-2")
HASHED = "sha256$of-the-api"
API = ApiFacts(
    "ca_test_1",
    "Invoicing",
    "InvoicingAPI",
    False,
    CredentialFacts(91, "x8Qz", AT + HOUR, AT - HOUR),
)
INDEX = 2**20 + 7
QUERY = TokenQuery(JTI, OTHER, INDEX, "ca_test_1", HASHED)
NOTHING = TokenQuery(None, None, None)


def token_of(claims: Any) -> str:
    """A text in three parts; it is not signed."""
    return f"e30.{base64url_encode(json.dumps(claims).encode()).decode()}.x"


def claims_of(tin: str = OTHER.tin, rob: str = OTHER.rob, **changes: Any) -> dict[str, Any]:
    right = {"jti": str(JTI), "taxpayer": {"tin": tin, "rob": rob}, "act": {"sub": "D1"}}
    right |= {"status": {"status_list": {"uri": "https://x/status/1", "idx": 7}}}
    return {name: value for name, value in (right | changes).items() if value is not None}


def asked(claims: Any) -> tuple[UUID | None, TaxpayerId | None]:
    query = token_query(token_of(claims), "ca_test_1", HASHED)
    assert (query.client_id, query.lookup) == ("ca_test_1", HASHED)
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
    assert token_query(text, "ca_test_1", HASHED) == replace(
        NOTHING, client_id="ca_test_1", lookup=HASHED
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
    (sent,) = token_statement([QUERY, NOTHING]).parameters
    assert sent == (
        f'[{{"number":0,"client_id":"ca_test_1","lookup":"{HASHED}","jti":"{JTI}",'
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
    "lookup": HASHED,
    "hint": "x8Qz",
    "expires_at": AT + HOUR,
    "revoked_at": AT - HOUR,
    "revoked_jti": JTI,
    "compromised_at": None,
    "index": INDEX,
    "of_client": "ci_test_1",
}


def read(query: TokenQuery = QUERY, facts: Any = None, **changes: Any) -> TokenReading:
    assert changes.keys() <= OF_API.keys()
    found = row(*(OF_API | changes).values(), **(facts or {}))
    (reading,) = token_statement([query]).parse([found])
    return reading


def test_each_column_becomes_its_fact() -> None:
    reading = read()
    assert (reading.at, reading.caller) == (AT, API)
    assert (reading.token.is_revoked, reading.token.key_is_compromised) == (True, False)
    login = reading.token.login
    assert login is not None
    assert (login.client.client_id, login.client.id, login.credential.id) == ("ci_test_1", 41, 51)
    assert login.represented is not None
    assert login.represented.taxpayer == OTHER


def test_a_token_whose_index_was_taken_away_has_ended() -> None:
    assert [read(index=index).token.has_index for index in (INDEX, 0, None)] == [True, True, False]


def test_a_compromised_key_is_no_revoked_token() -> None:
    token = read(revoked_jti=None, compromised_at=AT).token
    assert (token.is_revoked, token.key_is_compromised) == (False, True)


def test_without_a_secret_that_it_was_issued_for_there_is_no_login() -> None:
    assert read(facts={"secret": None}).token.login is None


@pytest.mark.parametrize(
    "changes", [{"lookup": "sha256$of-another"}, {"lookup": None}, {"secret": None}]
)
def test_without_the_very_secret_there_is_no_caller(changes: dict[str, Any]) -> None:
    assert read(**changes).caller is None


def test_many_are_read_at_once_each_for_its_own_query() -> None:
    queries = [QUERY, NOTHING]
    rows = [row(*OF_API.values(), number=number, client=number) for number in (1, 0)]
    found = token_statement(queries).parse(rows)
    assert [one.token.login and one.token.login.client.id for one in found] == [0, 1]
    assert [one.caller for one in found] == [API, None]
