"""How a taxpayer is named (specification 2.3, contract 1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxpayers.identifiers import MalformedIdentifier, Notation, TaxpayerId

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
