"""The package with the running service: status lists, or `POST /connect/introspect` (RFC 7662)."""

import time

import pytest

from einvoicing_tokens import InvalidToken, TokenVerifier, Unavailable
from einvoicing_tokens.issuer.clock import Clock
from einvoicing_tokens.status.status_lists import ENDED
from tests.introspection.party import Party, credentials
from tests.packages.issuer import INTROSPECT, Issuer, is_accepted
from tests.packages.test_keys import assert_unavailable
from tests.servers.service import Service

pytestmark = pytest.mark.gate

CREDENTIALS = ("ci_test_api", "cs_test_secret")
PUBLISHED_SECONDS = 30.0  # a second, on a machine that is busy with other tests


class LaterClock(Clock):
    """The clock of this machine; caches may be older than it says."""

    later_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later_seconds


@pytest.fixture(scope="module")
def party(node: Service) -> Party:
    return Party(node, "C6100000061")


def asking(party: Party, **other: str) -> TokenVerifier:
    known = tuple({**credentials(party.api), **other}.values())
    return TokenVerifier(party.service.url, audience="InvoicingAPI", introspect_as=known)  # type: ignore[arg-type]


def is_refused_soon(verifier: TokenVerifier, clock: LaterClock, token: str) -> bool:
    """Whether the next lists say so; each is fetched as if its ttl had passed."""
    deadline = time.monotonic() + PUBLISHED_SECONDS
    while is_accepted(verifier, token) and time.monotonic() < deadline:
        time.sleep(0.1)
        clock.later_seconds += 5
    return not is_accepted(verifier, token)


def test_a_token_is_accepted_until_its_client_ends_it_or_is_blocked(party: Party) -> None:
    clock, service = LaterClock(), party.service
    verifier = TokenVerifier(service.url, audience="InvoicingAPI", clock=clock)
    ended = party.token()
    assert "status" in verifier.verify(ended).claims
    party.revoke(ended)
    with pytest.raises(InvalidToken) as refused:
        asking(party).verify(ended)
    assert (refused.value.status, str(refused.value)) == (401, ENDED)
    assert is_refused_soon(verifier, clock, ended)
    token = party.token()  # with another place in the list
    for one in (verifier, asking(party)):
        assert is_accepted(one, token)
    service.manage("block_system_user", party.erp["client_id"], "--reason", "a test")
    assert is_refused_soon(verifier, clock, token)
    with pytest.raises(InvalidToken) as refused:
        verifier.verify(token)
    assert str(refused.value) == ENDED
    service.manage("unblock_system_user", party.erp["client_id"], "--reason", "a test")
    clock.later_seconds += 5
    assert is_accepted(verifier, party.token()), "a new login is a new place in the list"
    assert not is_accepted(verifier, token)


def test_wrong_credentials_of_the_api_are_503_and_in_its_log(
    party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Unavailable) as refused:
        asking(party, client_secret="cs_test_wrong").verify(party.token())
    assert "secret" not in str(refused.value)
    assert "introspection: 401" in caplog.text
    assert "Reference: " in caplog.text, "the service's own description says what to correct"


def test_a_token_that_is_not_ours_is_refused_without_a_question(issuer: Issuer) -> None:
    with pytest.raises(InvalidToken):
        issuer.verifier(introspect_as=CREDENTIALS).verify(issuer.token(aud="Other"))
    assert issuer.requests[INTROSPECT] == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"active": "true"}', b'{"active": 1}', b'{"active": null}', b"\xff"],
)
def test_an_answer_that_is_neither_yes_nor_no_lets_nobody_in(issuer: Issuer, body: bytes) -> None:
    issuer.answers[INTROSPECT] = body
    assert_unavailable(issuer.verifier(introspect_as=CREDENTIALS), issuer.token())


def test_an_answer_decides_about_one_request_only(issuer: Issuer) -> None:
    verifier, token = issuer.verifier(introspect_as=CREDENTIALS), issuer.token()
    issuer.answers[INTROSPECT] = b'{"active": true}'
    assert is_accepted(verifier, token)
    issuer.answers[INTROSPECT] = b'{"active": false}'
    with pytest.raises(InvalidToken):
        verifier.verify(token)
    issuer.is_away = True
    assert_unavailable(verifier, token)
