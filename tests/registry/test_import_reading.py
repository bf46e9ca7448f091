"""A CSV file as spreadsheets write it: every row read, every bad one named (contract 6)."""

import io
import tracemalloc

import pytest

from taxpayers.files.row_kinds import MAX_TAXPAYERS, TAXPAYERS, TaxpayerRow
from taxpayers.files.rows import ParsedFile, read_file
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.validation import ServiceError

HEADER = "tin,rob,name,active\n"


def read(content: str | bytes) -> ParsedFile[TaxpayerRow]:
    data = content.encode() if isinstance(content, str) else content
    return read_file(io.BytesIO(data), Notation(), MAX_TAXPAYERS, TAXPAYERS)


def entry(line: int, tin: str, rob: str, name: str, is_active: bool | None = None) -> TaxpayerRow:
    return TaxpayerRow(line, TaxpayerId(tin, rob), name, is_active)


ACME = entry(2, "C1234567890", "R-123", "Acme")


@pytest.mark.parametrize(
    "content",
    [
        "tin,rob,name\nC1234567890,R-123,Acme\n",
        "tin;rob;name\nC1234567890;R-123;Acme\n",
        "tin,rob,name\r\nC1234567890,R-123,Acme\r\n",
        "\ufefftin,rob,name\nC1234567890,R-123,Acme",
        "name,tin,rob\nAcme,C1234567890,R-123",
        'TIN, Rob ,"Name"\n c1234567890 ,r-123,"Acme"',
        "tin,rob,name,active\nC1234567890,R-123,Acme,",
        "tin,rob,name\nC1234567890,R-123,Acme\n\n,,\n \n",
        "tin,rob,name,,\nC1234567890,R-123,Acme,,\n",
    ],
    ids=[
        *("commas", "semicolons", "CRLF", "byte order mark", "any order", "blanks and capitals"),
        *("active left open", "blank rows", "blank columns"),
    ],
)
def test_the_same_table_is_read_however_it_was_written(content: str) -> None:
    assert read(content) == ParsedFile([ACME], [])


@pytest.mark.parametrize(
    ("word", "is_active"),
    [("yes", True), ("TRUE", True), ("1", True), ("no", False), ("False", False), ("0", False)],
)
def test_active_is_yes_or_no_as_spreadsheets_write_it(word: str, is_active: bool) -> None:
    reading = read(f"{HEADER}C1234567890,,Acme,{word}")
    assert reading.rows == [entry(2, "C1234567890", "", "Acme", is_active)]
    assert reading.rows[0].shown == ("C1234567890", "Acme", "", "yes" if is_active else "no")


def test_every_bad_row_is_named_with_its_line_and_its_fault() -> None:
    reading = read(
        HEADER
        + "C0000000001,,Good,\n"
        + "1234,,Short,\n"  # 3
        + ",,No TIN,\n"
        + "C0000000004,x,Bad ROB,\n"
        + "C0000000005,, ,\n"
        + "\n"
        + "C0000000006,,Maybe,perhaps\n"  # 8
        + "C0000000007,Few\n"
        + "C0000000008,,Many,yes,more\n"  # 10
        + f"C0000000009,,{'x' * 256},\n"
        + 'C0000000010,,"two\nlines",\n'  # 12 and 13
        + "c0000000001,,Again,\n"  # 14
        + "C0000000001,R-123,Another,\n"
        + "C0000000001,R-123,Another,\n"  # 16
    )
    assert reading.rows == [
        entry(2, "C0000000001", "", "Good"),
        entry(15, "C0000000001", "R-123", "Another"),
    ]
    assert [(row.line, row.fault) for row in reading.bad_rows] == [
        (3, "the TIN must be 5 to 20 letters and digits"),
        (4, "a TIN is missing or has letters outside A-Z"),
        (5, "the ROB number must be 5 to 20 letters, digits and hyphens"),
        (6, "Give a name: it is missing or blank"),
        (8, "active must be yes or no, not 'perhaps'"),
        (9, "it has 2 cells, the header has 4"),
        (10, "it has more cells than the header, which has 4"),
        (11, "Shorten a name to 255 characters: it has 256"),
        (12, "Write a name in one line without control characters"),
        (14, "C0000000001 is already in line 2"),
        (16, "C0000000001:R-123 is already in line 15"),
    ]
    assert (reading.bad_rows[3].code, reading.bad_rows[3].fields) == ("blank", ("name",))
    assert str(reading.bad_rows[0]) == "line 3: the TIN must be 5 to 20 letters and digits"


def test_a_taxpayer_in_a_bad_row_does_not_make_its_good_row_a_repetition() -> None:
    reading = read("tin,name\nC0000000001,\nC0000000001,Good\n")
    assert [e.line for e in reading.rows] == [3]
    assert [row.line for row in reading.bad_rows] == [2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file is empty, or its first line is."),
        (b"tin,name\n", "The file has no rows below its header."),
        (b"C1234567890,Acme\n", "must name the columns tin, name, and optionally rob, active"),
        (b"tin\tname\nC1234567890\tAcme\n", r"It is: 'tin\tname'"),
        (b"tin,name,telephone\nC1,A,1\n", "It is: 'tin,name,telephone'"),
        (b"\xff\xfet\x00i\x00n\x00", "Line 1 is not UTF-8. Save it as CSV UTF-8"),
        (b"tin,name\nC1234567890,Acme\nC1234567891,Caf\xe9\n", "Line 3 is not UTF-8."),
        (
            b"PK\x03\x04\x14\x00\x06\x00",
            "This is a spreadsheet, not a CSV file. Save it as CSV UTF",
        ),
        (b'tin,name\nC1234567890,"Ac"me\n', "Line 2 and what follows cannot be read as CSV"),
        (b'tin,name\nC1234567890,A\nC1234567891,"open\n\nend', "Line 3 and what follows cannot be"),
        (b"tin,name\n" + b"," * 1_000_000, "Line 2 is too long"),
        (b'tin,name\nC1,"a\n' + b'","\n' * 100_000, "is too long"),  # a row of many lines
        (b'tin,name\nC1,"' + b"a\n" * 100_000, "Line 2 and what follows cannot be read"),
        ("tin,name\nC1,Café\n".encode("utf-16-le"), "Line 1 has a NUL character"),
        (b"tin,name\nC1,\xed\xa0\x80\n", "Line 2 is not UTF-8"),  # half a pair
    ],
)
def test_a_malformed_file_is_refused_with_its_fault(content: bytes, message: str) -> None:
    with pytest.raises(ServiceError) as fault:
        read(content)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


class Endless(io.RawIOBase):
    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    def readline(self, size: int | None = -1, /) -> bytes:
        chunk = self._chunks[0]
        if len(self._chunks) > 1:
            del self._chunks[0]
        return chunk[: size or 0]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (Endless(b"\0" * 1_000_000), "Line 1 is too long"),
        (Endless(b"tin,name\n", b'C1234567890,"open\n', b"x" * 1000 + b"\n"), "Line 2 and what"),
    ],
)
def test_no_file_can_exhaust_the_memory(file: Endless, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError, match=message):
            # All that is used of a file.
            read_file(file, Notation(), MAX_TAXPAYERS, TAXPAYERS)  # type: ignore[arg-type]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_file_with_too_many_rows_is_refused() -> None:
    assert MAX_TAXPAYERS >= 100_000
    three = io.BytesIO(b"tin,name\nC0000000001,A\nC0000000002,B\nC0000000003,C\n")
    assert len(read_file(three, Notation(), 3, TAXPAYERS).rows) == 3
    three.seek(0)
    with pytest.raises(ServiceError, match="more than 2 rows"):
        read_file(three, Notation(), 2, TAXPAYERS)
