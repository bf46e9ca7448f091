"""May this client have a token, for whom, with what: every reason, every boundary (contract 1)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, NamedTuple

import pytest

from taxpayers.facts.source_networks import LoginSource
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
from taxpayers.rules import (
    Authorization,
    AuthorizationRequest,
    Refused,
    RegistryReason,
    check_credential,
    decide,
)

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
    ("documents:view", "documents:submit"),
    valid_from=AT - DAY,
    valid_until=None,
    revoked_at=None,
)
REPRESENTED = RepresentedFacts(OTHER, is_active=True, permissions=(PERMISSION,))
AS_TAXPAYER = AuthorizationRequest(
    Facts(CLIENT, SECRET), asked_scopes=None, known_scopes=("InvoicingAPI", "Other"), at=AT
)
ON_BEHALF = replace(AS_TAXPAYER, facts=Facts(CLIENT, SECRET, REPRESENTED))


class Refusal(NamedTuple):
    """The whole refusal: the reason, the date that it names, the parameter, the detail."""

    reason: str
    since: datetime | None = None
    parameter: str = ""
    detail: str = ""


def decision(request: AuthorizationRequest) -> Authorization | Refusal:
    try:
        return decide(request)
    except Refused as refused:
        return Refusal(refused.reason, refused.since, refused.parameter, refused.detail)


def secret(request: AuthorizationRequest, **facts: Any) -> AuthorizationRequest:
    changed = replace(request.facts.credential, **facts)
    return replace(request, facts=replace(request.facts, credential=changed))


def client(request: AuthorizationRequest, **facts: Any) -> AuthorizationRequest:
    changed = replace(request.facts.client, **facts)
    return replace(request, facts=replace(request.facts, client=changed))


def represented(request: AuthorizationRequest, **facts: Any) -> AuthorizationRequest:
    assert request.facts.represented
    changed = replace(request.facts.represented, **facts)
    return replace(request, facts=replace(request.facts, represented=changed))


def permissions(*granted: PermissionFacts) -> AuthorizationRequest:
    return represented(ON_BEHALF, permissions=granted)


def permission(**facts: Any) -> PermissionFacts:
    return replace(PERMISSION, **facts)


def test_a_taxpayer_in_order_is_authorized_for_itself() -> None:
    assert decision(AS_TAXPAYER) == Authorization(
        client_id="ci_test_x",
        subject=OWN,
        actor=None,
        scopes=("InvoicingAPI",),
        asked_scopes=None,
        permissions=(),
        at=AT,
    )


def test_an_intermediary_in_order_is_authorized_for_the_taxpayer_with_its_permissions() -> None:
    assert decision(ON_BEHALF) == Authorization(
        client_id="ci_test_x",
        subject=OTHER,
        actor=OWN,
        scopes=("InvoicingAPI",),
        asked_scopes=None,
        permissions=("documents:submit", "documents:view"),
        at=AT,
    )


# One fault each, in the order of the contract.
Spoil = Callable[[AuthorizationRequest], AuthorizationRequest]
FAULTS: list[tuple[Refusal, Spoil]] = [
    (Refusal(RegistryReason.SECRET_EXPIRED, AT - TICK), lambda q: secret(q, expires_at=AT - TICK)),
    (Refusal(RegistryReason.SECRET_REVOKED, AT), lambda q: secret(q, revoked_at=AT)),
    (
        Refusal(RegistryReason.SOURCE_NETWORK_NOT_ALLOWED, detail="192.0.2.7"),
        lambda q: replace(
            secret(q, allowed_networks=("203.0.113.0/24",)), source=LoginSource("192.0.2.7")
        ),
    ),
    (Refusal(RegistryReason.DPOP_PROOF_MISSING), lambda q: client(q, token_binding="dpop")),
    (Refusal(RegistryReason.SYSTEM_USER_BLOCKED, AT), lambda q: client(q, blocked_at=AT)),
    (
        Refusal(RegistryReason.SYSTEM_USER_EXPIRED, AT - TICK),
        lambda q: client(q, expires_at=AT - TICK),
    ),
    (Refusal(RegistryReason.TAXPAYER_INACTIVE), lambda q: client(q, taxpayer_is_active=False)),
    (Refusal(RegistryReason.NOT_AN_INTERMEDIARY), lambda q: client(q, intermediary=None)),
    (
        Refusal(RegistryReason.INTERMEDIARY_INACTIVE),
        lambda q: client(q, intermediary=IntermediaryFacts(is_active=False, active_until=None)),
    ),
    (Refusal(RegistryReason.TAXPAYER_NOT_ALLOWED), lambda q: represented(q, is_allowed=False)),
    (Refusal(RegistryReason.NO_PERMISSION), lambda q: represented(q, permissions=())),
    (
        Refusal(RegistryReason.PERMISSION_EXPIRED, AT - TICK),
        lambda q: represented(q, permissions=(permission(valid_until=AT - TICK),)),
    ),
    (
        Refusal(RegistryReason.PERMISSIONS_NOT_ALLOWED),
        lambda q: client(q, allowed_permissions=("documents:cancel",)),
    ),
    (
        Refusal(RegistryReason.INVALID_SCOPE, parameter="scope", detail="Nonsense"),
        lambda q: replace(q, asked_scopes=("InvoicingAPI", "Nonsense")),
    ),
]


@pytest.mark.parametrize(("refusal", "spoil"), FAULTS, ids=lambda v: getattr(v, "reason", ""))
def test_each_fault_alone_is_refused_for_its_reason(refusal: Refusal, spoil: Spoil) -> None:
    assert decision(spoil(ON_BEHALF)) == refusal


@pytest.mark.parametrize(("refusal", "spoil"), FAULTS, ids=lambda v: getattr(v, "reason", ""))
def test_who_only_authenticates_is_refused_for_its_secret_alone(
    refusal: Refusal, spoil: Spoil
) -> None:
    request = spoil(ON_BEHALF)
    if refusal.reason not in (RegistryReason.SECRET_EXPIRED, RegistryReason.SECRET_REVOKED):
        check_credential(request.facts.credential, request.at)
        return
    with pytest.raises(Refused) as refused:
        check_credential(request.facts.credential, request.at)
    assert (refused.value.reason, refused.value.since) == (refusal.reason, refusal.since)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(one, two, id=f"{one[0].reason} before {two[0].reason}")
        for one, two in combinations(FAULTS, 2)
        # One fact cannot be wrong in two ways.
        if {one[0].reason, two[0].reason}
        not in (
            {RegistryReason.NOT_AN_INTERMEDIARY, RegistryReason.INTERMEDIARY_INACTIVE},
            {RegistryReason.NO_PERMISSION, RegistryReason.PERMISSION_EXPIRED},
        )
    ],
)
def test_of_two_faults_the_one_that_the_contract_names_first_is_told(
    first: tuple[Refusal, Spoil], second: tuple[Refusal, Spoil]
) -> None:
    assert decision(second[1](first[1](ON_BEHALF))) == first[0]


def test_every_reason_of_the_registry_has_a_fault_in_the_contracts_order() -> None:
    # One rule refuses with three reasons, two with two; one fault stands for each.
    same_rule = {
        RegistryReason.PERMISSION_NOT_YET_VALID,
        RegistryReason.PERMISSION_REVOKED,
        RegistryReason.OWN_TAXPAYER_NOT_ALLOWED,
        RegistryReason.CERTIFICATE_MISSING,
    }
    assert [fault.reason for fault, _ in FAULTS] == [
        r for r in RegistryReason if r not in same_rule
    ]


@pytest.mark.parametrize(
    "role",
    [
        None,
        IntermediaryFacts(is_active=False, active_until=None),
        IntermediaryFacts(is_active=True, active_until=AT - DAY),
    ],
)
def test_the_role_of_an_intermediary_is_not_asked_of_a_taxpayer_login(
    role: IntermediaryFacts | None,
) -> None:
    assert isinstance(decision(client(AS_TAXPAYER, intermediary=role)), Authorization)


# --- Boundaries: a last moment still holds, a first one holds already --------------------------

UNTIL: list[tuple[str, RegistryReason, Callable[[datetime | None], AuthorizationRequest]]] = [
    (
        "secret",
        RegistryReason.SECRET_EXPIRED,
        lambda until: secret(ON_BEHALF, expires_at=until or datetime.max.replace(tzinfo=UTC)),
    ),
    (
        "system user",
        RegistryReason.SYSTEM_USER_EXPIRED,
        lambda until: client(ON_BEHALF, expires_at=until),
    ),
    (
        "intermediary",
        RegistryReason.INTERMEDIARY_INACTIVE,
        lambda until: client(ON_BEHALF, intermediary=IntermediaryFacts(True, until)),
    ),
    (
        "permission",
        RegistryReason.PERMISSION_EXPIRED,
        lambda until: permissions(permission(valid_until=until)),
    ),
]


@pytest.mark.parametrize(("what", "reason", "ending"), UNTIL, ids=[what for what, *_ in UNTIL])
def test_the_last_moment_still_holds_and_the_microsecond_after_does_not(
    what: str, reason: RegistryReason, ending: Callable[[datetime | None], AuthorizationRequest]
) -> None:
    assert isinstance(decision(ending(AT + TICK)), Authorization)
    assert isinstance(decision(ending(AT)), Authorization)
    assert decision(ending(AT - TICK)) == Refusal(reason, AT - TICK)
    assert isinstance(decision(ending(None)), Authorization), f"a {what} without an end never ends"


FROM: list[tuple[str, RegistryReason, Callable[[datetime], AuthorizationRequest]]] = [
    (
        "block",
        RegistryReason.SYSTEM_USER_BLOCKED,
        lambda begin: client(ON_BEHALF, blocked_at=begin),
    ),
    (
        "secret's revocation",
        RegistryReason.SECRET_REVOKED,
        lambda begin: secret(ON_BEHALF, revoked_at=begin),
    ),
    (
        "permission's revocation",
        RegistryReason.PERMISSION_REVOKED,
        lambda begin: permissions(permission(revoked_at=begin)),
    ),
]


@pytest.mark.parametrize(("what", "reason", "beginning"), FROM, ids=[what for what, *_ in FROM])
@pytest.mark.parametrize("since", [AT - TICK, AT, AT + TICK, AT + DAY])
def test_a_block_and_a_revocation_are_facts_whatever_the_clock_says(
    what: str,
    reason: RegistryReason,
    beginning: Callable[[datetime], AuthorizationRequest],
    since: datetime,
) -> None:
    assert decision(beginning(since)) == Refusal(reason, since), f"a {what} waited for the clock"


def test_a_permission_revoked_before_a_late_clock_is_revoked_and_not_expired() -> None:
    revoked = permission(valid_until=AT + DAY, revoked_at=AT + 2 * DAY)
    refusal = Refusal(RegistryReason.PERMISSION_REVOKED, AT + 2 * DAY)
    assert decision(permissions(revoked)) == refusal


def test_a_permission_was_in_force_until_it_was_revoked() -> None:
    revoked = permission(valid_until=AT + DAY, revoked_at=AT)
    moments = [AT - 2 * DAY, AT - TICK, AT, AT + TICK]
    assert [was_in_force(revoked, at) for at in moments] == [False, True, False, False]
    assert not is_in_force(revoked, AT - TICK)


def test_a_permission_holds_from_its_first_moment() -> None:
    coming = permission(valid_from=AT + TICK)
    assert decision(permissions(coming)) == Refusal(
        RegistryReason.PERMISSION_NOT_YET_VALID, AT + TICK
    )
    assert isinstance(decision(permissions(permission(valid_from=AT))), Authorization)
    assert isinstance(decision(permissions(permission(valid_from=AT - TICK))), Authorization)


def test_a_permission_of_one_microsecond_holds_for_that_microsecond() -> None:
    brief = permissions(permission(valid_from=AT, valid_until=AT + TICK))
    at = [AT - TICK, AT, AT + TICK, AT + 2 * TICK]
    held = [isinstance(decision(replace(brief, at=moment)), Authorization) for moment in at]
    assert held == [False, True, True, False]


# --- Who is represented -------------------------------------------------------------------------


def test_unknown_inactive_and_nothing_granted_are_one_answer() -> None:
    answers = [
        decision(represented(ON_BEHALF, is_active=None, permissions=())),
        decision(represented(ON_BEHALF, is_active=False)),
        decision(represented(ON_BEHALF, is_active=False, permissions=())),
        decision(represented(ON_BEHALF, permissions=())),
    ]
    assert answers == [Refusal(RegistryReason.NO_PERMISSION)] * 4


def test_an_intermediary_whose_time_is_over_is_told_since_when() -> None:
    over = client(ON_BEHALF, intermediary=IntermediaryFacts(is_active=True, active_until=AT - DAY))
    assert decision(over) == Refusal(RegistryReason.INTERMEDIARY_INACTIVE, AT - DAY)


def test_an_intermediary_that_staff_switched_off_is_not_told_its_date() -> None:
    # The date would say that it ended by itself.
    off = client(ON_BEHALF, intermediary=IntermediaryFacts(is_active=False, active_until=AT - DAY))
    assert decision(off) == Refusal(RegistryReason.INTERMEDIARY_INACTIVE)


# --- Several permissions ------------------------------------------------------------------------

COMING = permission(codes=("documents:cancel",), valid_from=AT + DAY)
EXPIRED = permission(codes=("documents:reject",), valid_until=AT - DAY)
REVOKED = permission(codes=("documents:cancel",), revoked_at=AT - 2 * DAY)


def test_only_codes_of_permissions_in_force_count_each_once_and_sorted() -> None:
    again = permission(codes=("documents:view", "documents:cancel"))
    authorization = decision(permissions(COMING, EXPIRED, REVOKED, PERMISSION, again))
    assert isinstance(authorization, Authorization)
    assert authorization.permissions == (
        "documents:cancel",
        "documents:submit",
        "documents:view",
    )
    authorization = decision(permissions(COMING, EXPIRED, REVOKED, PERMISSION))
    assert isinstance(authorization, Authorization)
    assert authorization.permissions == ("documents:submit", "documents:view")


@pytest.mark.parametrize(
    ("granted", "refusal"),
    [
        ([COMING], Refusal(RegistryReason.PERMISSION_NOT_YET_VALID, AT + DAY)),
        ([EXPIRED], Refusal(RegistryReason.PERMISSION_EXPIRED, AT - DAY)),
        ([REVOKED], Refusal(RegistryReason.PERMISSION_REVOKED, AT - 2 * DAY)),
        # The one that is still to come is the best news, the earliest of them first.
        ([EXPIRED, COMING, REVOKED], Refusal(RegistryReason.PERMISSION_NOT_YET_VALID, AT + DAY)),
        (
            [permission(valid_from=AT + 9 * DAY), COMING],
            Refusal(RegistryReason.PERMISSION_NOT_YET_VALID, AT + DAY),
        ),
        # Otherwise the one that ended last.
        ([EXPIRED, REVOKED], Refusal(RegistryReason.PERMISSION_EXPIRED, AT - DAY)),
        (
            [EXPIRED, permission(revoked_at=AT - TICK)],
            Refusal(RegistryReason.PERMISSION_REVOKED, AT - TICK),
        ),
        # Revoked before it began, so it is not to come.
        (
            [permission(valid_from=AT + DAY, revoked_at=AT - DAY)],
            Refusal(RegistryReason.PERMISSION_REVOKED, AT - DAY),
        ),
        # Revoked after it had ended: the end is what ended it.
        (
            [permission(valid_until=AT - 3 * DAY, revoked_at=AT - DAY)],
            Refusal(RegistryReason.PERMISSION_EXPIRED, AT - 3 * DAY),
        ),
        # Revoked at its last moment, at which it was still in force.
        (
            [permission(valid_from=AT - 9 * DAY, valid_until=AT - DAY, revoked_at=AT - DAY)],
            Refusal(RegistryReason.PERMISSION_REVOKED, AT - DAY),
        ),
    ],
)
def test_of_permissions_not_in_force_the_most_useful_is_told(
    granted: list[PermissionFacts], refusal: Refusal
) -> None:
    assert decision(permissions(*granted)) == refusal
    assert decision(permissions(*reversed(granted))) == refusal


# --- Scopes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "known", "held", "granted", "is_told"),
    [
        # Nothing asked: all that the client may have, and it is told (RFC 6749 section 3.3).
        (None, ("A", "B", "C"), ("A", "B"), ("A", "B"), True),
        (None, ("A",), ("A",), ("A",), True),
        (("A",), ("A", "B"), ("A", "B"), ("A",), False),
        (("B", "A"), ("A", "B"), ("A", "B"), ("B", "A"), False),
        # A known scope that the client may not have narrows the grant, and it is told.
        (("A", "B"), ("A", "B"), ("A",), ("A",), True),
        (("A", "A"), ("A",), ("A",), ("A",), False),
        # What a client holds from earlier days is not granted once the service knows it no more.
        (None, ("A",), ("A", "Old"), ("A",), True),
    ],
)
def test_the_granted_scopes(
    asked: tuple[str, ...] | None,
    known: tuple[str, ...],
    held: tuple[str, ...],
    granted: tuple[str, ...],
    is_told: bool,
) -> None:
    request = replace(client(AS_TAXPAYER, scopes=held), asked_scopes=asked, known_scopes=known)
    authorization = decision(request)
    assert isinstance(authorization, Authorization)
    assert authorization.scopes == granted
    assert authorization.scopes_differ is is_told


@pytest.mark.parametrize(
    ("asked", "held", "detail"),
    [
        (("Nonsense",), ("A",), "Nonsense"),
        (("A", "Nonsense", "More"), ("A",), "Nonsense"),
        (("B",), ("A",), ""),  # known, but not this client's, and nothing is left
        (None, (), ""),
        (None, ("Old",), ""),
        (("Old",), ("Old",), "Old"),
    ],
)
def test_an_unknown_scope_or_nothing_left_is_refused(
    asked: tuple[str, ...] | None, held: tuple[str, ...], detail: str
) -> None:
    request = replace(client(AS_TAXPAYER, scopes=held), asked_scopes=asked, known_scopes=("A", "B"))
    assert decision(request) == Refusal(
        RegistryReason.INVALID_SCOPE, parameter="scope", detail=detail
    )


def test_an_authorization_cannot_be_changed_afterwards() -> None:
    authorization = decision(AS_TAXPAYER)
    with pytest.raises(AttributeError):
        authorization.subject = OTHER  # type: ignore[misc,union-attr]


def test_a_refusal_that_ends_in_a_traceback_says_all_of_it() -> None:
    refused = Refused("a_reason", since=AT, parameter="scope", detail="Nonsense")
    for word in ("a_reason", "2026", "scope", "Nonsense"):
        assert word in str(refused)


# --- Until when time alone refuses nothing --------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "end"),
    [
        (Facts(CLIENT, SECRET), AT + DAY),
        (Facts(replace(CLIENT, intermediary=None), SECRET), AT + DAY),
        (Facts(replace(CLIENT, expires_at=AT + TICK), SECRET), AT + TICK),
        (Facts(CLIENT, replace(SECRET, expires_at=AT)), AT),
        (Facts(CLIENT, replace(SECRET, expires_at=AT - TICK)), None),
        (
            Facts(replace(CLIENT, intermediary=IntermediaryFacts(True, AT + TICK)), SECRET),
            AT + TICK,
        ),
        (
            Facts(
                CLIENT,
                SECRET,
                replace(
                    REPRESENTED,
                    permissions=(PERMISSION, replace(PERMISSION, valid_until=AT + TICK)),
                ),
            ),
            AT + TICK,
        ),
    ],
)
def test_the_next_end_is_the_first_last_moment_that_has_not_passed(
    facts: Facts, end: datetime | None
) -> None:
    assert next_end(facts, AT) == end
