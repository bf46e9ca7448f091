"""What a client proves with the header DPoP, and what its token says of it. Pure."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from pytest_django import Settings

from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.facts.values import Facts
from taxpayers.rules import Refused
from tests.client_auth.signer import AT, RIGHT, signed_proof
from tests.endpoint.test_rules import CLIENT, SECRET
from tokens.access_tokens.claims import read_confirmation, token_type
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.dpop.possession import must_prove_key, nonces, with_proof
from tokens.dpop.proof import read_proof

BASE = "https://id.example.org"
ADDRESS = f"{BASE}/connect/token"


def client(binding: str = "dpop", **secret: Any) -> AuthenticatedClient:
    facts = Facts(replace(CLIENT, token_binding=binding), replace(SECRET, **secret))
    return AuthenticatedClient(Method.CLIENT_SECRET_POST, facts)


def proof(nonce: str | None = None, method: str = "POST") -> str:
    sent = nonces().current(AT) if nonce is None else nonce
    return signed_proof(ADDRESS, method=method, nonce=f'"{sent}"'.encode())


def proved(
    one: AuthenticatedClient, sent: str | None, *, was_used: bool = False
) -> AuthenticatedClient:
    return with_proof(one, sent, AT, called=BASE, was_used=was_used)


def refused(one: AuthenticatedClient, sent: str, *, was_used: bool = False) -> tuple[str, str, str]:
    with pytest.raises(Refused) as no:
        proved(one, sent, was_used=was_used)
    return no.value.reason, no.value.parameter, no.value.detail


def test_a_right_proof_binds_the_token_to_its_key_and_is_used_up() -> None:
    found, read = (
        proved(client(), proof()),
        read_proof(proof(), method="POST", address=ADDRESS, at=AT),
    )
    assert found.confirmation == Confirmation(TokenBinding.DPOP, RIGHT.thumbprint)
    assert found.proof is not None
    assert found.proof.id == read.use_id(CLIENT.client_id, RIGHT.thumbprint)
    assert found.proof.expires_at == AT + timedelta(seconds=60)
    assert replace(found, confirmation=UNBOUND, proof=None) == client()


@pytest.mark.parametrize("binding", ["", "tls", "other"])
def test_who_need_not_prove_a_key_proves_nothing(binding: str) -> None:
    one = client(binding)
    assert not must_prove_key(one)
    for sent in (None, proof(), "x"):
        assert proved(one, sent) == one


def test_a_wrong_proof_is_refused_by_its_name() -> None:
    fault = ("invalid_dpop_proof", "DPoP")
    assert refused(client(), "x") == (*fault, "proof_unreadable")
    assert refused(client(), proof(method="GET")) == (*fault, "proof_htm")
    assert refused(client(), proof(), was_used=True) == (*fault, "proof_used_before")
    assert refused(client(), proof(nonce="")) == ("use_dpop_nonce", "DPoP", "")
    # Who has no right nonce is not told anything else.
    assert refused(client(), proof(nonce="x"), was_used=True)[0] == "use_dpop_nonce"


def test_all_processes_of_a_service_have_the_same_nonces(settings: Settings) -> None:
    known = nonces().current(AT)
    nonces.cache_clear()
    assert nonces().is_accepted(known, AT)
    settings.SECRET_KEY = "that of another service"
    nonces.cache_clear()
    assert not nonces().is_accepted(known, AT)
    nonces.cache_clear()


KEY, CERTIFICATE = Confirmation("dpop", "a-thumbprint"), Confirmation("tls", "a-thumbprint")


def test_how_a_token_is_sent_by_what_it_is_bound_to() -> None:
    """The claim itself: tests/tokens/test_access_tokens.py."""
    assert read_confirmation(None) == UNBOUND
    assert [token_type(one) for one in (UNBOUND, KEY, CERTIFICATE)] == ["Bearer", "DPoP", "Bearer"]


@pytest.mark.parametrize(
    "claim",
    [{}, [], "jkt", 1, {"jkt": ""}, {"jkt": None}, {"kid": "a"}, {"jkt": "a", "x5t#S256": "b"}],
)
def test_a_confirmation_that_is_not_known_is_never_ignored(claim: Any) -> None:
    with pytest.raises(ValueError, match="not known"):
        read_confirmation(claim)
