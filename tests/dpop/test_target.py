"""`htu` is compared after RFC 3986 section 6.2 has made both forms one."""

import pytest

from tokens.dpop.target import is_same_target

ADDRESS = "https://id.example.org/connect/token"


@pytest.mark.parametrize(
    "same",
    [
        ADDRESS,
        "HTTPS://ID.Example.ORG/connect/token",
        "https://id.example.org:443/connect/token",
        "https://id.example.org/connect/token?a=b#c",
        "https://id.example.org/connect/tok%65n",
        "https://id.example.org/./connect/x/../token",
    ],
)
def test_the_same(same: str) -> None:
    assert is_same_target(same, ADDRESS)
    assert is_same_target(ADDRESS, same)


@pytest.mark.parametrize(
    "other",
    [
        "http://id.example.org/connect/token",
        "https://id.example.org:8443/connect/token",
        "https://id.example.org.evil.example/connect/token",
        "https://id.example.org@evil.example/connect/token",
        "https://evil.example@id.example.org/connect/token",
        "https://id.example.org/connect/token/",
        "https://id.example.org//connect/token",
        "https://id.example.org/connect%2Ftoken",
        "/connect/token",
        "https://id.example.org:x/connect/token",
        *("https://[::1/connect/token", "https://id.example.org//x@[::1", "https:///[", "//["),
        *("https://id.example.org//\N{ACCOUNT OF}", "https://\N{ACCOUNT OF}/connect/token"),
        *("https://id.example.org:٤٤٣x/", "https://id.example.org:99999/connect/token", ""),
    ],
)
def test_another(other: str) -> None:
    assert not is_same_target(other, ADDRESS)


def test_an_empty_path_is_a_slash_and_escapes_have_no_case() -> None:
    assert is_same_target("https://h", "https://h/")
    assert is_same_target("http://h:80/", "http://h/")
    assert is_same_target("https://h:443/", "https://h/")
    assert is_same_target("https://h/%2f", "https://h/%2F")
    assert not is_same_target("https://h/%2f", "https://h/2F")


def test_what_is_no_address_is_the_same_as_nothing_not_even_itself() -> None:
    assert not is_same_target("", "")
    assert not is_same_target("urn:x", "urn:x")


def test_a_letter_is_the_same_with_its_escape_but_for_a_slash_within_a_part() -> None:
    """A portal writes `TIN:ROB` as it is, or as its library escapes it."""
    written = "https://h/taxpayers/C1:R1(\u00e9)"
    assert is_same_target("https://h/taxpayers/C1%3aR1%28%C3%A9%29", written)
    assert is_same_target(written, "https://h/taxpayers/C1%3AR1(%C3%A9)")
    assert not is_same_target("https://h/a%2Fb", "https://h/a/b")
    assert not is_same_target("https://h/a%252Fb", "https://h/a%2Fb")
    assert not is_same_target("https://h/a%253Ab", "https://h/a%3Ab")
    assert not is_same_target("https://h/a%3Fb", "https://h/a?b")
    assert not is_same_target("https://h/%2e%2e%2fa", "https://h/a")
