"""`htu` is compared after RFC 3986 section 6.2 has made both forms one."""

import pytest

from einvoicing_tokens.dpop.target import comparable
from tokens.dpop import proof

ADDRESS = "https://id.example.org/connect/token"
WRITTEN = "https://h/taxpayers/C1:R1(\u00e9)"  # a library may escape it


def is_same_target(one: str, other: str) -> bool:
    """To the service, and to the package."""
    is_same = proof.is_same_target(one, other)
    assert (comparable(one) is not None and comparable(one) == comparable(other)) is is_same
    return is_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ADDRESS, ADDRESS),
        ("HTTPS://ID.Example.ORG/connect/token", ADDRESS),
        ("https://id.example.org:443/connect/token", ADDRESS),
        ("https://id.example.org/connect/token?a=b#c", ADDRESS),
        ("https://id.example.org/connect/tok%65n", ADDRESS),
        ("https://id.example.org/./connect/x/../token", ADDRESS),
        ("https://id.example.org/%2e/connect/x/%2E%2e/token", ADDRESS),
        *(("https://h", "https://h/"), ("http://h:80/", "http://h/")),
        ("https://h/%2f", "https://h/%2F"),
        ("https://h/taxpayers/C1%3aR1%28%C3%A9%29", WRITTEN),
        ("https://h/taxpayers/C1%3AR1(%C3%A9)", WRITTEN),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert is_same_target(one, other)
    assert is_same_target(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((text, ADDRESS) for text in (
            *("http://id.example.org/connect/token", "https://id.example.org:8443/connect/token"),
            "https://id.example.org.evil.example/connect/token",
            "https://id.example.org@evil.example/connect/token",
            "https://evil.example@id.example.org/connect/token",
            *("https://id.example.org/connect/token/", "https://id.example.org//connect/token"),
            *("https://id.example.org/connect%2Ftoken", "/connect/token"),
            "https://id.example.org:x/connect/token",
            *("https://[::1/connect/token", "https://id.example.org//x@[::1", "https:///[", "//["),
            *("https://id.example.org//\N{ACCOUNT OF}", "https://\N{ACCOUNT OF}/connect/token"),
            *("https://id.example.org:٤٤٣x/", "https://id.example.org:99999/connect/token", ""),
        )),
        *(("", ""), ("urn:x", "urn:x")),  # no addresses: not even the same as themselves
        *(("https://h/%2f", "https://h/2F"), ("https://h/a%2Fb", "https://h/a/b")),
        *(("https://h/a%252Fb", "https://h/a%2Fb"), ("https://h/a%253Ab", "https://h/a%3Ab")),
        *(("https://h/a%3Fb", "https://h/a?b"), ("https://h/%2e%2e%2fa", "https://h/a")),
    ],
)  # fmt: skip
def test_another(one: str, other: str) -> None:
    assert not is_same_target(one, other)
