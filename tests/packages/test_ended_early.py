"""A blocked client and a revoked token are refused by the package, without a call (contract 2)."""

import time

import pytest
from pytest_django import DjangoDbBlocker

from einvoicing_tokens import InvalidToken, TokenVerifier
from einvoicing_tokens.issuer.clock import Clock
from einvoicing_tokens.status.status_lists import ENDED
from tests.introspection.party import Party
from tests.packages.issuer import is_accepted
from tests.servers.service import Service

PUBLISHED_SECONDS = 30.0  # a second, on a machine that is busy with other tests


class LaterClock(Clock):
    """The clock of this machine; caches may be older than it says."""

    def __init__(self) -> None:
        self.later_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later_seconds


@pytest.fixture(scope="module")
def party(node: Service, django_db_blocker: DjangoDbBlocker) -> Party:
    with django_db_blocker.unblock():  # of the service that runs
        return Party(node, "C6200000062")


def is_refused_soon(verifier: TokenVerifier, clock: LaterClock, token: str) -> bool:
    """Whether the next lists say so; each is fetched as if its ttl had passed."""
    deadline = time.monotonic() + PUBLISHED_SECONDS
    while is_accepted(verifier, token) and time.monotonic() < deadline:
        time.sleep(0.1)
        clock.later_seconds += 5
    return not is_accepted(verifier, token)


def test_a_blocked_client_is_refused_and_its_old_token_stays_so(
    party: Party, django_db_blocker: DjangoDbBlocker
) -> None:
    clock = LaterClock()
    verifier = TokenVerifier(party.service.url, audience="InvoicingAPI", clock=clock)
    token = party.token()
    assert "status" in verifier.verify(token).claims
    client_id = party.erp["client_id"]
    with django_db_blocker.unblock():
        party.service.manage("block_system_user", client_id, "--reason", "a test")
    assert is_refused_soon(verifier, clock, token)
    with pytest.raises(InvalidToken, match="no longer active") as refused:
        verifier.verify(token)
    assert str(refused.value) == ENDED
    with django_db_blocker.unblock():
        party.service.manage("unblock_system_user", client_id, "--reason", "a test")
    clock.later_seconds += 5
    assert is_accepted(verifier, party.token()), "a new login is a new place in the list"
    assert not is_accepted(verifier, token)


def test_a_token_that_its_client_ended_is_refused(party: Party) -> None:
    clock = LaterClock()
    verifier = TokenVerifier(party.service.url, audience="InvoicingAPI", clock=clock)
    token = party.token()
    assert is_accepted(verifier, token)
    party.revoke(token)
    assert is_refused_soon(verifier, clock, token)
    assert is_accepted(verifier, party.token())
