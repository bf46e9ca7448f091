"""Client ids and secrets recognise what happened to them, without a query (contract 3)."""

import random
import re
import string
import zlib
from functools import reduce
from operator import and_, or_

import pytest
from hypothesis import given, strategies as st

from taxpayers.credentials import (
    IDS,
    Environment,
    Fault,
    Prefix,
    fault_of,
    hash_secret,
    is_same_secret,
    new_client_id,
    new_client_secret,
    public_credentials,
)
from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
ALPHABET = string.ascii_letters + string.digits + "_"
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
CLIENT_SECRET = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"
API_ID = "pa_test_0tZ9IYGT3jkU4Y0n78mfDC2vpszh"
environments: st.SearchStrategy[Environment] = st.sampled_from(["live", "test"])
kinds = st.sampled_from(Prefix)


def new(kind: Prefix, environment: Environment) -> str:
    return (new_client_id if kind in IDS else new_client_secret)(environment, kind)


def number_in(credential: str) -> int:
    """The random number: all digits to the base 62 but the last six, which are the checksum."""
    number = 0
    for digit in credential.rpartition("_")[2][:-6]:
        number = 62 * number + DIGITS.index(digit)
    return number


def with_checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = DIGITS[digit] + digits
    return text + digits


@given(kinds, environments)
def test_a_new_credential_has_no_fault_and_needs_no_encoding(
    kind: Prefix, environment: Environment
) -> None:
    credential = new(kind, environment)
    assert fault_of(credential, kind, environment) is None
    assert re.fullmatch(rf"{kind}_{environment}_[A-Za-z0-9]+", credential)
    assert len(credential) <= 64  # the column, and what a login event keeps of a client id


def test_every_credential_is_another_one() -> None:
    assert len({new_client_secret("live") for _ in range(1000)}) == 1000
    assert len({new_client_id("live") for _ in range(1000)}) == 1000


@pytest.mark.parametrize(("kind", "bits"), [*zip(Prefix, (128, 256, 128, 256), strict=True)])
def test_a_credential_has_this_many_random_bits(kind: Prefix, bits: int) -> None:
    """Each bit is set in some and not in others, and none is set beyond them."""
    numbers = [number_in(new(kind, "live")) for _ in range(200)]
    assert reduce(or_, numbers) == 2**bits - 1
    assert reduce(and_, numbers) == 0


def test_public_credentials_are_those_of_their_name_in_the_form_of_all_others() -> None:
    public = [public_credentials(f"client {n}") for n in range(50)]
    assert public == [public_credentials(f"client {n}") for n in range(50)]
    assert len(set(public)) == 50
    ids = [number_in(one.client_id) for one in public]
    secrets_ = [number_in(one.client_secret) for one in public]
    assert (reduce(or_, ids), reduce(or_, secrets_)) == (2**128 - 1, 2**256 - 1)
    for one in public:
        assert fault_of(one.client_id, Prefix.CLIENT_ID, "test") is None
        assert fault_of(one.client_secret, Prefix.CLIENT_SECRET, "live") == Fault.OTHER_ENVIRONMENT


@pytest.mark.parametrize("kind", Prefix)
def test_who_knows_the_state_of_pythons_generator_knows_no_credential(kind: Prefix) -> None:
    """The module `random` can be predicted; credentials come from the operating system."""
    state = random.getstate()
    first = new(kind, "live")
    random.setstate(state)
    assert new(kind, "live") != first
    assert random.getstate() == state  # it was not used at all


@given(kinds, environments, st.data())
def test_every_truncation_is_detected(
    kind: Prefix, environment: Environment, data: st.DataObject
) -> None:
    credential = new(kind, environment)
    length = data.draw(st.integers(0, len(credential) - 1))
    assert fault_of(credential[:length], kind, environment) is not None
    assert fault_of(credential[-length:] if length else "", kind, environment) is not None


def test_every_character_of_one_secret_counts() -> None:
    for at, present in enumerate(CLIENT_SECRET):
        for replacement in ALPHABET.replace(present, ""):
            changed = CLIENT_SECRET[:at] + replacement + CLIENT_SECRET[at + 1 :]
            assert fault_of(changed, Prefix.CLIENT_SECRET, "test") is not None


@pytest.mark.parametrize(
    ("text", "kind", "fault"),
    [
        (CLIENT_SECRET, Prefix.CLIENT_SECRET, None),
        (CLIENT_ID, Prefix.CLIENT_ID, None),
        (CLIENT_SECRET[:-1], Prefix.CLIENT_SECRET, Fault.CUT_OFF),
        ("cs_test_", Prefix.CLIENT_SECRET, Fault.CUT_OFF),
        (CLIENT_ID[:-3], Prefix.CLIENT_ID, Fault.CUT_OFF),
        (CLIENT_SECRET[:-1] + "1", Prefix.CLIENT_SECRET, Fault.MISTYPED),
        (CLIENT_SECRET.replace("test", "live"), Prefix.CLIENT_SECRET, Fault.MISTYPED),
        (CLIENT_SECRET.replace("test", "prod"), Prefix.CLIENT_SECRET, Fault.MISTYPED),
        (CLIENT_SECRET[:20] + " " + CLIENT_SECRET[20:], Prefix.CLIENT_SECRET, Fault.MISTYPED),
        (CLIENT_SECRET[:-1] + "é", Prefix.CLIENT_SECRET, Fault.MISTYPED),
        (CLIENT_ID, Prefix.CLIENT_SECRET, Fault.SWAPPED),
        ("cs_wherever", Prefix.CLIENT_ID, Fault.SWAPPED),
        (CLIENT_SECRET, Prefix.CLIENT_ID, Fault.SWAPPED),
        (with_checksum(f"cs_live_{'7aQ' * 14}7"), Prefix.CLIENT_SECRET, Fault.OTHER_ENVIRONMENT),
        (API_ID, Prefix.CLIENT_ID, Fault.OTHER_PARTY),
        (API_ID, Prefix.CLIENT_SECRET, Fault.OTHER_PARTY),
        (API_ID, Prefix.API_SECRET, Fault.SWAPPED),
        (CLIENT_SECRET, Prefix.API_SECRET, Fault.OTHER_PARTY),
        (f" {CLIENT_SECRET}", Prefix.CLIENT_SECRET, Fault.BLANKS),
        (f"\u00a0{CLIENT_ID}\t", Prefix.CLIENT_ID, Fault.BLANKS),
        (f'"{CLIENT_SECRET}"', Prefix.CLIENT_SECRET, Fault.QUOTED),
        (f"\ufeff{CLIENT_SECRET}", Prefix.CLIENT_SECRET, Fault.QUOTED),
        ("<client_secret>", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("${CLIENT_SECRET}", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("your_client_secret_here", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("xxxxxxxx", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("cs_test_…", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("cs_live_xxxxxxxxxxxxxxxx", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("cs_test_" + "0" * 49, Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        # Random characters that spell a word: cut off, and with a wrong checksum.
        ("cs_test_O5puTL9TJ4Ix4ox10FadzV6pJOyourWEKsm", Prefix.CLIENT_SECRET, Fault.CUT_OFF),
        ("cs_test_" + "7aQ2bZtodo" * 4 + "7aQ2bZ777", Prefix.CLIENT_SECRET, Fault.MISTYPED),
        # What is around or inside a placeholder makes it no other thing.
        (" <client_secret>\t", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("<client\nsecret>", Prefix.CLIENT_SECRET, Fault.PLACEHOLDER),
        ("\u017fample", Prefix.CLIENT_SECRET, Fault.FOREIGN),  # only looks like "sample"
        (" 550e8400-e29b-41d4-a716-446655440000", Prefix.CLIENT_ID, Fault.FOREIGN),
        # As long as a secret without its checksum, or shorter.
        ("cs_test_" + "7" * 42 + "-", Prefix.CLIENT_SECRET, Fault.MISTYPED),
        ("cs_test_" + "7" * 41 + "-", Prefix.CLIENT_SECRET, Fault.CUT_OFF),
        ("550e8400-e29b-41d4-a716-446655440000", Prefix.CLIENT_ID, Fault.FOREIGN),
        (CLIENT_SECRET.upper(), Prefix.CLIENT_SECRET, Fault.FOREIGN),
        ("", Prefix.CLIENT_SECRET, Fault.FOREIGN),
    ],
)
def test_a_fault_is_named(text: str, kind: Prefix, fault: Fault | None) -> None:
    assert fault_of(text, kind, "test") == fault


@pytest.mark.parametrize(("kind", "length"), [(Prefix.CLIENT_ID, 22), (Prefix.CLIENT_SECRET, 43)])
def test_only_the_right_length_is_right_even_with_a_checksum(kind: Prefix, length: int) -> None:
    faults = {length - 1: Fault.CUT_OFF, length: None, length + 1: Fault.MISTYPED}
    for digits, fault in faults.items():
        credential = with_checksum(f"{kind}_test_{'7aQ2bZ' * 9:.{digits}}")
        assert fault_of(credential, kind, "test") is fault


def test_a_hostile_text_is_checked_at_once() -> None:
    # 16 KiB is what a login may send; a slow expression would need minutes for it.
    for text in ("a" * 16_384, "cs_test_" + "a" * 16_384, " " * 16_384, "[" * 16_384, "x" * 16_384):
        assert fault_of(text, Prefix.CLIENT_SECRET, "test") is not None


@given(environments)
def test_only_the_same_secret_matches_its_stored_value(environment: Environment) -> None:
    secret = new_client_secret(environment)
    stored = hash_secret(secret)
    assert is_same_secret(hash_secret(secret), stored)
    assert not is_same_secret(hash_secret(new_client_secret(environment)), stored)
    # A person who reads the database cannot log in with what stands there.
    assert not is_same_secret(hash_secret(stored), stored)
    assert fault_of(stored, Prefix.CLIENT_SECRET, environment) is not None


# --- Identifiers of taxpayers ---------------------------------------------------------------------


NOTATION = Notation()


@pytest.mark.parametrize(
    ("text", "tin", "rob"),
    [
        ("C1234567890", "C1234567890", ""),
        ("C1234567890:201901234567", "C1234567890", "201901234567"),
        ("IG12345678912:ABC-12345-X", "IG12345678912", "ABC-12345-X"),
        ("  C1234567890\t", "C1234567890", ""),
        ("c1234567890:ab-cde", "C1234567890", "AB-CDE"),
        ("12345", "12345", ""),  # the shortest
        ("A" * 20 + ":" + "-" * 20, "A" * 20, "-" * 20),  # the longest
    ],
)
def test_a_tin_identifies_a_taxpayer_with_or_without_a_rob_number(
    text: str, tin: str, rob: str
) -> None:
    assert NOTATION.parse(text) == TaxpayerId(tin, rob)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "TIN is missing"),
        (" \t", "TIN is missing"),
        ("C1234567890:", "there is no ROB number after the colon"),
        (":", "there is no ROB number after the colon"),
        ("1234", "TIN does not have the form"),
        ("A" * 21, "TIN does not have the form"),
        ("C1234567890:1234", "ROB number does not have the form"),
        ("C-1234567890", "TIN does not have the form"),  # a dash may stand in a ROB number only
        ("C1234567890:" + "1" * 21, "ROB number does not have the form"),
        ("C12345 67890", "TIN does not have the form"),
        ("C1234567890: 12345", "ROB number does not have the form"),
        ("C1234567890:12345:12345", "ROB number does not have the form"),
        ("C1234567890\n", "TIN does not have the form"),
        ("C123456789\u0661", "letters outside A-Z"),  # a digit, but not one of ours
        ("\u017f234567890", "letters outside A-Z"),  # upper() would make it an S
        ("C1234567890:\ufb01123", "letters outside A-Z"),
    ],
)
def test_any_other_form_is_refused_with_its_fault(text: str, fault: str) -> None:
    with pytest.raises(MalformedIdentifier, match=fault):
        NOTATION.parse(text)


def test_another_country_has_its_own_notation() -> None:
    egypt = Notation(tin="[0-9]{9}", rob="[0-9]{1,3}")
    assert egypt.parse("123456789:7") == TaxpayerId("123456789", "7")
    with pytest.raises(MalformedIdentifier, match=r"\[0-9\]\{9\}"):
        egypt.parse("C1234567890")


def test_an_alternative_in_a_pattern_must_match_the_whole_tin() -> None:
    either = Notation(tin="C[0-9]{5}|D[0-9]{5}")
    for text in ("C12345X", "XD12345"):
        with pytest.raises(MalformedIdentifier):
            either.parse(text)


tins = st.from_regex(r"[A-Z0-9]{5,20}", fullmatch=True)
robs = st.from_regex(r"[A-Z0-9-]{5,20}", fullmatch=True)


@given(st.builds(TaxpayerId, tins, robs | st.just("")), st.text(" \t", max_size=3))
def test_what_is_printed_is_read_back(taxpayer: TaxpayerId, blanks: str) -> None:
    assert NOTATION.parse(f"{blanks}{str(taxpayer).lower()}{blanks}") == taxpayer
