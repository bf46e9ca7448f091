"""What a decision holds beside its outcome, which `tests/rules` proves in every state."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from taxpayers.facts.validity import is_in_force, next_end, was_in_force
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    IntermediaryFacts,
    PermissionFacts,
    RepresentedFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import AuthorizationRequest, Refused, RegistryReason, check_credential, decide

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
OWN, OTHER = TaxpayerId("C1000000001"), TaxpayerId("C2000000002", "201901234567")

SECRET = CredentialFacts(1, "7aQ2", expires_at=AT + DAY, revoked_at=None)
CLIENT = ClientFacts(
    id=1,
    client_id="ci_test_x",
    taxpayer=OWN,
    taxpayer_is_active=True,
    scopes=("InvoicingAPI", "ReportingAPI"),
    logins_per_minute=12,
    blocked_at=None,
    expires_at=None,
    intermediary=IntermediaryFacts(is_active=True, active_until=None),
)
PERMISSION = PermissionFacts(
    ("documents:view", "documents:submit"), valid_from=AT - DAY, valid_until=None, revoked_at=None
)
REPRESENTED = RepresentedFacts(OTHER, is_active=True, permissions=(PERMISSION,))
AS_TAXPAYER = AuthorizationRequest(
    Facts(CLIENT, SECRET), asked_scopes=None, known_scopes=("InvoicingAPI", "Other"), at=AT
)
ON_BEHALF = replace(AS_TAXPAYER, facts=Facts(CLIENT, SECRET, REPRESENTED))


def test_a_code_that_was_granted_twice_is_in_the_token_once_and_all_are_sorted() -> None:
    again = replace(PERMISSION, codes=("documents:view", "documents:cancel"))
    represented = replace(REPRESENTED, permissions=(PERMISSION, again))
    found = decide(replace(ON_BEHALF, facts=Facts(CLIENT, SECRET, represented)))
    assert found.permissions == ("documents:cancel", "documents:submit", "documents:view")


def test_an_intermediary_that_staff_switched_off_is_not_told_its_date() -> None:
    """The date would say that it ended by itself."""
    off = replace(CLIENT, intermediary=IntermediaryFacts(is_active=False, active_until=AT - DAY))
    with pytest.raises(Refused) as refused:
        decide(replace(ON_BEHALF, facts=Facts(off, SECRET, REPRESENTED)))
    assert (refused.value.reason, refused.value.since) == ("intermediary_inactive", None)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"expires_at": AT}, None),
        ({"expires_at": AT - TICK}, (RegistryReason.SECRET_EXPIRED, AT - TICK)),
        ({"revoked_at": AT + DAY}, (RegistryReason.SECRET_REVOKED, AT + DAY)),
    ],
)
def test_who_only_authenticates_is_refused_for_its_secret(
    changes: dict[str, Any], refusal: tuple[str, datetime] | None
) -> None:
    secret = replace(SECRET, **changes)
    if refusal is None:
        check_credential(secret, AT)
        return
    with pytest.raises(Refused) as refused:
        check_credential(secret, AT)
    assert (refused.value.reason, refused.value.since) == refusal


def test_a_permission_was_in_force_until_it_was_revoked() -> None:
    revoked = replace(PERMISSION, valid_until=AT + DAY, revoked_at=AT)
    moments = [AT - 2 * DAY, AT - TICK, AT, AT + TICK]
    assert [was_in_force(revoked, at) for at in moments] == [False, True, False, False]
    assert not is_in_force(revoked, AT - TICK)


ENDING = replace(PERMISSION, valid_until=AT + TICK)


@pytest.mark.parametrize(
    ("facts", "end"),
    [
        (Facts(replace(CLIENT, intermediary=None), SECRET), AT + DAY),
        (Facts(replace(CLIENT, expires_at=AT + TICK), SECRET), AT + TICK),
        (Facts(CLIENT, replace(SECRET, expires_at=AT)), AT),
        (Facts(CLIENT, replace(SECRET, expires_at=AT - TICK)), None),
        (
            Facts(replace(CLIENT, intermediary=IntermediaryFacts(True, AT + TICK)), SECRET),
            AT + TICK,
        ),
        (Facts(CLIENT, SECRET, replace(REPRESENTED, permissions=(PERMISSION, ENDING))), AT + TICK),
    ],
)
def test_the_next_end_is_the_first_last_moment_that_has_not_passed(
    facts: Facts, end: datetime | None
) -> None:
    assert next_end(facts, AT) == end
