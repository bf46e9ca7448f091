"""Tokens that were ended early are refused without a question about them (Token Status List)."""

import base64
import threading
from typing import Any

import pytest

from einvoicing_tokens import InvalidToken
from einvoicing_tokens.issuer.keys import PAUSE_SECONDS
from einvoicing_tokens.status.status_list import MAX_BYTES, StatusList, unpacked
from einvoicing_tokens.status.status_lists import _MAX_LISTS, ENDED, StatusLists
from tests.packages.issuer import JWKS, LIST, METADATA, Issuer, is_accepted, new_key
from tests.packages.test_keys import assert_unavailable
from tokens.access_tokens.claims import LIST_LENGTH
from tokens.keys.signer import sign
from tokens.status_lists.format import compress

INDEX = 777_777
MINUTE = 60

# draft-ietf-oauth-status-list-21 sections 4.1 and 4.2
ONE_BIT = ("eNrbuRgAAhcBXQ", [1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1])
TWO_BITS = ("eNo76fITAAPfAgc", [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3])


def statuses(status_list: StatusList, count: int) -> list[int]:
    return [status_list.status(index) for index in range(count)]


def test_the_lists_of_the_draft_are_read_as_it_says() -> None:
    """The longest of them: tests/status_lists/test_format.py."""
    for bits, (lst, expected) in ((1, ONE_BIT), (2, TWO_BITS)):
        assert statuses(unpacked({"bits": bits, "lst": lst}), len(expected)) == expected


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_an_index_beyond_the_list_has_no_status(bits: int) -> None:
    status_list = StatusList(bits, b"\xff\xff")
    assert statuses(status_list, 16 // bits) == [2**bits - 1] * (16 // bits)
    for index in (16 // bits, -1, 10**30):
        with pytest.raises(IndexError):
            status_list.status(index)


@pytest.mark.parametrize(
    "claim",
    [
        {"bits": 1},
        {"lst": ONE_BIT[0]},
        *({"bits": bits, "lst": ONE_BIT[0]} for bits in (0, 3, 16, "1", True, None)),
        *({"bits": 1, "lst": lst} for lst in (5, None, "", "!!!!", "AAAA", "eNrbuRg", "ü")),
        {"bits": 1, "lst": "eNrbuRgAAhcBXA"},  # another checksum
        {"bits": 1, "lst": base64.b64encode(b"\xb9\xa3").decode()},
        None,
    ],
    ids=str,
)
def test_what_is_no_list_is_not_read(claim: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        unpacked(claim)


def test_a_list_that_unpacks_to_too_much_is_cut_off() -> None:
    largest = compress(bytes(MAX_BYTES))
    assert statuses(unpacked({"bits": 8, "lst": largest}), 3) == [0, 0, 0]
    with pytest.raises(ValueError, match="too large"):
        unpacked({"bits": 1, "lst": compress(bytes(MAX_BYTES + 1))})


def test_a_token_is_accepted_until_its_bit_is_set(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(), issuer.token(index=INDEX)
    assert is_accepted(verifier, token)
    issuer.end(INDEX)
    issuer.clock.seconds = 4.9
    assert is_accepted(verifier, token), "within the ttl of the list that it has"
    issuer.clock.seconds = 5
    with pytest.raises(InvalidToken) as refused:
        verifier.verify(token)
    assert (refused.value.status, str(refused.value)) == (401, ENDED)
    assert is_accepted(verifier, issuer.token(index=INDEX + 1))
    assert is_accepted(verifier, issuer.token(index=INDEX - 1))


def test_a_list_is_fetched_once_in_its_ttl_whatever_many_tokens_it_has(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    for seconds, fetched in ((0, 1), (4.9, 1), (5, 2), (9.9, 2), (10, 3)):
        issuer.clock.seconds = seconds
        for index in range(30):
            assert is_accepted(verifier, issuer.token(index=index))
        assert issuer.requests[LIST] == fetched


def test_every_status_but_valid_ends_a_token(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    four = {"bits": 2, "lst": compress(bytes([0b11_10_01_00]))}
    issuer.answers[LIST] = issuer.status_list(status_list=four)
    accepted = [is_accepted(verifier, issuer.token(index=index)) for index in range(4)]
    assert accepted == [True, False, False, False]


def test_a_token_without_a_status_and_one_that_is_not_ours_cost_no_list(issuer: Issuer) -> None:
    assert is_accepted(issuer.verifier(), issuer.token())
    for not_ours in ({"key": new_key()}, {"aud": "Other"}):
        assert not is_accepted(issuer.verifier(), issuer.token(index=INDEX, **not_ours))
    assert issuer.requests[LIST] == 0


@pytest.mark.parametrize(
    "reference",
    [
        *(
            {"idx": 1, "uri": uri}
            for uri in (
                *("", 5, None, "/status/1", "evil.example", "http://a/1", "{url}/connect/token"),
                *("{other}/status/1", "{url}@{host}/status/1", "{host}/status/1"),
                *("//{host}/status/1", "{url}"),
                *(f"{{url}}/status/{name}" for name in ("", "..", "../1", "1/2", "1?x", "1#x")),
                *(f"{{url}}/status/{name}" for name in ("1\n", "%2e%2e", "\\1")),
            )
        ),
        *({"idx": index, "uri": "{url}/status/1"} for index in (-1, "1", 1.0, True, None)),
        *({"idx": 1}, {"uri": "{url}/status/1"}, 5, None),
    ],
    ids=str,
)
def test_no_address_is_asked_but_one_of_the_issuers_lists(
    issuer: Issuer, other_issuer: Issuer, reference: Any
) -> None:
    if isinstance(reference, dict) and "uri" in reference:
        reference = reference | {"uri": issuer.in_place(reference["uri"], other_issuer)}
    with pytest.raises(InvalidToken, match="not issued by the identity service"):
        issuer.verifier().verify(issuer.token(status={"status_list": reference}))
    assert set(issuer.requests) == {JWKS, METADATA}
    assert not other_issuer.requests


@pytest.mark.parametrize("status", [{}, {"other": {"idx": 1}}, [], "x", 5])
def test_a_status_that_is_not_understood_is_not_passed_over(issuer: Issuer, status: Any) -> None:
    assert not is_accepted(issuer.verifier(), issuer.token(status=status))


def test_an_index_that_the_list_does_not_have_is_refused(issuer: Issuer) -> None:
    assert not is_accepted(issuer.verifier(), issuer.token(index=LIST_LENGTH))
    assert is_accepted(issuer.verifier(), issuer.token(index=LIST_LENGTH - 1))


@pytest.mark.parametrize(
    "changes",
    [
        *({"typ": typ} for typ in ("at+jwt", "JWT")),
        *({"sub": sub} for sub in (None, "https://id.example.org/status/1", "/status/1")),
        {"iss": "https://id.example.org"},
        *({"exp": exp} for exp in (None, "soon")),
        {"iat": None},
        *({"ttl": ttl} for ttl in ("x", 0, -5, 3601)),
        *({"status_list": None}, {"status_list": []}, {"status_list": {"bits": 1, "lst": "AAAA"}}),
        {"status_list": {"bits": 1, "lst": compress(bytes(MAX_BYTES + 1))}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_a_list_that_is_not_valid_lets_nobody_in(issuer: Issuer, changes: dict[str, Any]) -> None:
    issuer.answers[LIST] = issuer.status_list(**changes)
    assert_unavailable(issuer.verifier(), issuer.token(index=INDEX))


def test_a_list_that_another_key_signed_lets_nobody_in(issuer: Issuer) -> None:
    token, keys = issuer.token(index=INDEX), issuer.body(JWKS)
    issuer.keys = [new_key()]
    issuer.answers = {JWKS: keys, LIST: issuer.status_list()}
    assert_unavailable(issuer.verifier(), token)


def test_an_access_token_is_no_status_list_nor_the_other_way_round(issuer: Issuer) -> None:
    assert not is_accepted(issuer.verifier(), issuer.status_list().decode())
    for body in (issuer.token().encode(), b"\xff\x00 no JWT"):
        issuer.answers[LIST] = body
        assert_unavailable(issuer.verifier(), issuer.token(index=INDEX))


def test_a_list_that_has_expired_lets_nobody_in_although_the_service_answers(
    issuer: Issuer,
) -> None:
    verifier, token = issuer.verifier(), issuer.token(index=INDEX)
    issuer.answers[LIST] = issuer.status_list()
    issuer.clock.seconds = MINUTE + 9.9
    assert is_accepted(verifier, token)
    issuer.clock.seconds = MINUTE + 10
    for _ in range(3):
        assert_unavailable(verifier, token)
    assert issuer.requests[LIST] == 2, "not fetched again for each request"
    assert_unavailable(issuer.verifier(), token)


def test_a_list_of_a_new_key_makes_a_stopped_key_invalid_at_once(issuer: Issuer) -> None:
    """A thief who signs tokens with a stopped key is refused when the next list is fetched."""
    verifier, stolen = issuer.verifier(), issuer.signer
    assert is_accepted(verifier, issuer.token(index=INDEX))
    issuer.keys = [new_key()]
    issuer.clock.seconds = PAUSE_SECONDS
    assert not is_accepted(verifier, issuer.token(index=INDEX, key=stolen))
    assert is_accepted(verifier, issuer.token(index=INDEX))


def test_an_old_list_is_not_used_while_another_thread_fetches(issuer: Issuer) -> None:
    """After a quiet time the list may be as old as it lives: everybody waits for the new one."""
    verifier, token = issuer.verifier(), issuer.token(index=INDEX)
    verifier.verify(token)
    issuer.end(INDEX)
    issuer.clock.seconds = 50
    issuer.may_answer.clear()
    refused: list[str] = []

    def verify() -> None:
        try:
            verifier.verify(token)
        except InvalidToken as error:
            refused.append(str(error))

    threads = [threading.Thread(target=verify) for _ in range(4)]
    for thread in threads:
        thread.start()
    issuer.may_answer.set()
    for thread in threads:
        thread.join(30)
    assert refused == [ENDED] * 4
    assert issuer.requests[LIST] == 2


def test_the_number_of_lists_in_memory_is_bounded(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    lists: StatusLists = verifier._published.status_lists
    for number in range(_MAX_LISTS + 5):
        uri = f"{issuer.url}/status/{number}"
        body = {"sub": uri, "iat": 0, "exp": 2**40, "status_list": {"bits": 1, "lst": ONE_BIT[0]}}
        issuer.answers[f"/status/{number}"] = sign(body, issuer.signer, "statuslist+jwt").encode()
        assert is_accepted(verifier, issuer.token(status={"status_list": {"idx": 1, "uri": uri}}))
    assert len(lists._caches) == _MAX_LISTS
