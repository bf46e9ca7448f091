"""The bytes of a status list: the vectors of draft-ietf-oauth-status-list-21, and its size."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from einvoicing_tokens.status.status_list import unpacked
from taxpayers.facts.values import StatusFacts
from tests.status_lists.reader import bits_of
from tokens.access_tokens.claims import LIST_LENGTH, claims_of_token, index_of_claims
from tokens.calls import TakenIndex
from tokens.status_lists.assignment import NONE_RESERVED, RESERVE, ReservedIndexes
from tokens.status_lists.format import compress, list_claims

ISSUER = "https://id.example.org"
# Section 4.1: two bytes. The appendix of test vectors: 2^20 entries.
SHORT = (0, 3, 4, 5, 7, 8, 9, 13, 15)
SHORT_LST = "eNrbuRgAAhcBXQ"
LONG = (0, 1993, 25460, 159495, 495669, 554353, 645645, 723232, 854545, 934534, 1000345)
LONG_LST = (
    "eNrt3AENwCAMAEGogklACtKQPg9LugC9k_ACvreiogEAAKkeCQAAAAAAAAAAAAAAAAAAAIBylgQAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAXG9IAAAAAAAAAPwsJAAAAAAAAAAAAAAA"
    "vhsSAAAAAAAAAAAA7KpLAAAAAAAAAAAAAAAAAAAAAJsLCQAAAAAAAAAAADjelAAAAAAAAAAAKjDMAQAA"
    "AACAZC8L2AEb"
)


def bits(set_at: Iterable[int], length: int) -> bytearray:
    """A list in which these indexes are set, written once more: the lowest bit comes first."""
    places = set(set_at)
    text = "".join("1" if n in places else "0" for n in range(length))
    return bytearray(int(text[n : n + 8][::-1], 2) for n in range(0, length, 8))


@pytest.mark.parametrize(
    ("set_at", "length", "lst"), [(SHORT, 16, SHORT_LST), (LONG, 2**20, LONG_LST)]
)
def test_the_vectors_of_the_draft(set_at: tuple[int, ...], length: int, lst: str) -> None:
    made = compress(bits(set_at, length))
    for one in (lst, made):
        assert bits_of({"status_list": {"lst": one}}) == bits(set_at, length)
        assert unpacked({"bits": 1, "lst": one}).packed == bits(set_at, length), "by the package"
    assert len(made) <= len(lst)


def test_the_short_vector_is_the_same_to_the_byte() -> None:
    assert compress(bytes([0xB9, 0xA3])) == SHORT_LST


def test_a_million_indexes_of_which_one_in_a_hundred_is_set_are_less_than_20_kb() -> None:
    places = Random(7).sample(range(1_000_000), 10_000)  # noqa: S311 - a sample
    size = len(compress(bits(places, LIST_LENGTH)))
    print(f"1,000,000 indexes, 1 % set: {size} bytes")  # noqa: T201 - a figure for the reader
    assert size < 20_000


@pytest.mark.parametrize(
    ("index", "number", "idx"),
    [(0, 0, 0), (LIST_LENGTH - 1, 0, LIST_LENGTH - 1), (LIST_LENGTH, 1, 0), (7 * 2**20 + 9, 7, 9)],
)
def test_an_index_is_a_place_in_a_list(index: int, number: int, idx: int) -> None:
    claims = claims_of_token(ISSUER, index)
    assert claims == {"status_list": {"idx": idx, "uri": f"{ISSUER}/status/{number}"}}
    assert index_of_claims({"status": claims}) == index
    assert index_of_claims({}) is None


def test_a_list_has_these_claims_and_no_other() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 900_000, UTC)
    issued_at = int(at.timestamp())
    assert list_claims(ISSUER, 3, "lst", at, timedelta(minutes=30)) == {
        "iss": ISSUER,
        "sub": f"{ISSUER}/status/3",
        "iat": issued_at,
        "exp": issued_at + 1800,
        "ttl": 5,
        "status_list": {"bits": 1, "lst": "lst", "aggregation_uri": f"{ISSUER}/status"},
    }


TAKEN = StatusFacts(1, 7, ("InvoicingAPI",))


def reserve_of(*numbers: int) -> ReservedIndexes:
    reserved = ReservedIndexes()
    reserved.add(TakenIndex(TAKEN, numbers))
    return reserved


def test_each_is_given_once_in_their_order_and_then_none() -> None:
    reserved = reserve_of(5, 3)
    reserved.add(TakenIndex(None, (9,)))
    given = [reserved.take() for _ in range(4)]
    assert [each and each[0] for each in given] == [5, 3, 9, None]


def test_versions_are_random_numbers_that_a_database_can_store() -> None:
    reserved = reserve_of(*range(500))
    versions = {version for _, version in iter(reserved.take, None)}
    assert len(versions) == 500
    assert 2**62 <= max(versions) < 2**63  # of a bigint, the sign apart, each bit is used


def test_a_login_that_must_ask_the_database_reserves_nothing() -> None:
    assert (NONE_RESERVED.take(), NONE_RESERVED.wanted) == (None, 0)
    assert ReservedIndexes().wanted == RESERVE > 100  # so nearly every first login finds one
