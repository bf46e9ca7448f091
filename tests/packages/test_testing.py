"""What the package has for the tests of API teams, and what it remembers of tokens."""

import threading

import pytest

from einvoicing_tokens import InsufficientScope, InvalidToken, TokenVerifier, Unavailable
from einvoicing_tokens.remembered import Remembered
from einvoicing_tokens.testing import TokenIssuer


@pytest.fixture
def token_issuer() -> TokenIssuer:
    """As the package's plug-in makes it, which is not installed here."""
    return TokenIssuer()


def test_tokens_of_every_kind_can_be_made(
    token_issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread in a test"))
    verifier = token_issuer.verifier()
    own = verifier.verify(token_issuer.token("C1234567890:12345"))
    assert (str(own.taxpayer), own.actor, own.permissions) == ("C1234567890:12345", None, None)
    made = token_issuer.token(actor="C9876543210", permissions=["documents:view"])
    agents = verifier.verify(made)
    assert (agents.actor, agents.permissions) == ("C9876543210", ("documents:view",))
    with pytest.raises(InsufficientScope):
        agents.require(permission="documents:submit")
    for refused in (
        token_issuer.token(expired=True),
        token_issuer.token(aud="OtherAPI"),
        token_issuer.token(bound_to="a-thumbprint"),
        token_issuer.token(jti=None),
        TokenIssuer().token(),
    ):
        with pytest.raises(InvalidToken):
            verifier.verify(refused)


def test_an_ended_token_and_an_issuer_that_is_away_can_be_tried(token_issuer: TokenIssuer) -> None:
    verifier, token = token_issuer.verifier(), token_issuer.token()
    verifier.verify(token)
    token_issuer.end(token)
    with pytest.raises(InvalidToken):
        verifier.verify(token)
    verifier.verify(token_issuer.token())
    token_issuer.is_away = True
    with pytest.raises(Unavailable):
        token_issuer.verifier().verify(token)


def test_a_token_that_was_verified_is_known_and_another_text_is_not(
    token_issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier, token = token_issuer.verifier(), token_issuer.token()
    verifier.verify(token)
    header, payload, signature = token.split(".")
    for other in (f"{token}A", f" {token}", f"{header}.{payload}.{signature[::-1]}"):
        with pytest.raises(InvalidToken):
            verifier.verify(other)
    monkeypatch.setattr(TokenVerifier, "_read", lambda *_: pytest.fail("read again"))
    verifier.verify(token)


def test_the_one_that_was_not_sent_for_the_longest_time_is_forgotten_first() -> None:
    known: Remembered[str] = Remembered(2)
    known.put("a", "A")
    known.put("b", "B")
    assert known.get("a") == "A"
    known.put("c", "C")
    assert [known.get(text) for text in "abc"] == ["A", None, "C"]


def test_an_audience_must_be_named() -> None:
    with pytest.raises(ValueError, match="audience"):
        TokenVerifier("https://id.example.org", audience="")
