"""Which networks a secret can be limited to, and who is within them: to the bit. Pure."""

import pytest

from taxpayers.facts.source_networks import (
    LoginSource,
    NetworkFault,
    UnusableNetwork,
    is_within,
    read_networks,
)
from taxpayers.services.live_credentials import validate_networks
from taxpayers.validation import ServiceError

PREFIX_24_IN_54_DIGITS = f"{24:054}"


def fault_of(text: str) -> tuple[str, str, str]:
    with pytest.raises(UnusableNetwork) as unusable:
        read_networks([text])
    return unusable.value.fault, unusable.value.text, unusable.value.instead


@pytest.mark.parametrize(
    ("texts", "networks"),
    [
        ([], []),
        (["192.0.2.7"], ["192.0.2.7/32"]),
        (["2001:DB8::7"], ["2001:db8::7/128"]),
        ([" 192.0.2.0/24\n", "192.0.2.0/255.255.255.0"], ["192.0.2.0/24"]),
        (
            ["2001:db8::/32", "198.51.100.0/24", "9.0.0.0/8"],
            ["9.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"],
        ),
        # IPv4 that was written as IPv6 is what the addresses of logins are.
        (["::ffff:192.0.2.0/120"], ["192.0.2.0/24"]),
        (["::ffff:192.0.2.7"], ["192.0.2.7/32"]),
        (["::ffff:0:0/97"], ["0.0.0.0/1"]),
        (["0.0.0.0/1", "::/1"], ["0.0.0.0/1", "::/1"]),
        ([f"192.0.2.0/{PREFIX_24_IN_54_DIGITS}"], ["192.0.2.0/24"]),  # 64 characters
    ],
)
def test_networks_are_stored_in_one_form_in_order_and_each_once(
    texts: list[str], networks: list[str]
) -> None:
    assert read_networks(texts) == networks


UNREADABLE = (
    *("", "x", "192.0.2", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0 192.0.2.1"),
    *("2001:db8::/129", "fe80::1%eth0", "fe80::%1/64"),
    f"192.0.2.0/0{PREFIX_24_IN_54_DIGITS}",  # 65 characters
)
MEANT = {
    "192.0.2.7/24": "192.0.2.0/24",
    "2001:db8::1/64": "2001:db8::/64",
    "::ffff:192.0.2.7/120": "192.0.2.0/24",
}


def test_what_is_no_network_is_refused_and_named_as_far_as_it_is_short() -> None:
    for text in UNREADABLE:
        assert fault_of(text) == (NetworkFault.UNREADABLE, text[:64], "")
    for text, instead in MEANT.items():
        assert fault_of(text) == (NetworkFault.HOST_BITS, text, instead)
    for text in ("0.0.0.0/0", "::/0", "::ffff:0:0/96"):
        assert fault_of(text) == (NetworkFault.EVERYWHERE, text, "")


def test_a_secret_has_20_networks_at_most() -> None:
    twenty = [f"192.0.2.{n}" for n in range(20)]
    assert len(validate_networks([*twenty, "192.0.2.0/32"]).split()) == 20
    with pytest.raises(ServiceError, match="Give 20 networks at most, not 21"):
        validate_networks([*twenty, "192.0.2.20"])


NETWORKS = ("192.0.2.0/30", "2001:db8::/64")


@pytest.mark.parametrize(
    ("address", "is_inside"),
    [
        ("192.0.2.0", True),
        ("192.0.2.3", True),
        ("::ffff:192.0.2.3", True),  # as a listener for both protocols reports it
        ("2001:db8::ffff:ffff", True),
        ("192.0.1.255", False),
        ("192.0.2.4", False),
        ("::ffff:192.0.2.4", False),
        ("2001:db8:0:1::", False),
        ("::192.0.2.1", False),
        ("192.0.2.1:443", False),
        ("", False),
        (None, False),
    ],
)
def test_who_is_within_one_of_the_networks(address: str | None, is_inside: bool) -> None:
    assert is_within(LoginSource(address), NETWORKS) is is_inside
    assert not is_within(LoginSource(address), ())
