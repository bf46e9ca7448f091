"""Every state of the facts that decide a login, and what the contract says about them. Pure.

A fact has as many values here as differ for a decision: absent or present; before, at or after the
moment of the login. They stand from the most generous to the strictest one, each with the refusal
of a login in which nothing else is wrong. No two moments are the same, so a refusal that names the
date of another fact is found.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    IntermediaryFacts,
    PermissionFacts,
    RepresentedFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import AuthorizationRequest, Refused, decide

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OWN, OTHER = TaxpayerId("C1000000001"), TaxpayerId("C2000000002", "201901234567")
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
KNOWN_SCOPES = ("A", "B")
Asked = tuple[str, ...] | None


def ago(microseconds: int) -> datetime:
    return AT - timedelta(microseconds=microseconds)


def ahead(microseconds: int) -> datetime:
    return AT + timedelta(microseconds=microseconds)


class Refusal(NamedTuple):
    reason: str
    since: datetime | None = None
    parameter: str = ""
    detail: str = ""


class Granted(NamedTuple):
    subject: TaxpayerId
    actor: TaxpayerId | None
    scopes: frozenset[str]
    codes: frozenset[str]


Outcome = Granted | Refusal


class Value(NamedTuple):
    """One value of a fact, and the refusal if it alone is wrong."""

    fact: Any
    refusal: Refusal | None = None


# --- The facts, in the order in which the contract checks them ------------------------------------
SECRET_EXPIRES_AT = (
    Value(ahead(1)),
    Value(AT),  # its last moment
    Value(ago(1), Refusal("secret_expired", ago(1))),
)
# What is revoked or blocked is so whatever the clock says.
SECRET_REVOKED_AT = (
    Value(None),
    Value(ago(2), Refusal("secret_revoked", ago(2))),
    Value(AT, Refusal("secret_revoked", AT)),
    Value(ahead(2), Refusal("secret_revoked", ahead(2))),
)
BLOCKED_AT = (
    Value(None),
    Value(ago(3), Refusal("system_user_blocked", ago(3))),
    Value(ahead(3), Refusal("system_user_blocked", ahead(3))),
)
EXPIRES_AT = (
    Value(None),
    Value(ahead(4)),
    Value(AT),
    Value(ago(4), Refusal("system_user_expired", ago(4))),
)
TAXPAYER_IS_ACTIVE = (Value(True), Value(False, Refusal("taxpayer_inactive")))
ROLE = (
    Value(IntermediaryFacts(True, None)),
    Value(IntermediaryFacts(True, ahead(5))),
    Value(IntermediaryFacts(True, AT)),
    Value(IntermediaryFacts(True, ago(5)), Refusal("intermediary_inactive", ago(5))),
    Value(IntermediaryFacts(False, None), Refusal("intermediary_inactive")),
    Value(None, Refusal("not_an_intermediary")),
)
# The taxpayer of `onbehalfof`; None: there is no such taxpayer.
REPRESENTED_IS_ACTIVE = (Value(True), Value(False), Value(None))
# Each of these permissions is granted or not, so several of them stand side by side.
PERMISSIONS = {
    "in force": PermissionFacts(("view", "submit"), ago(9), None, None),
    "to come": PermissionFacts(("cancel",), ahead(6), None, None),
    "expired": PermissionFacts(("reject",), ago(9), ago(7), None),
    "revoked": PermissionFacts(("reject", "view"), ago(9), None, ago(8)),
}
IS_GRANTED = (Value(True), Value(False))
# To what a client is limited; none: not at all. What is in force has "view" and "submit".
ALLOWED_PERMISSIONS = (
    Value(()),
    Value(("view", "submit", "cancel")),
    Value(("view", "reject")),
    Value(("reject",), Refusal("permissions_not_allowed")),
)
HAS_ALLOWED_TAXPAYERS = (Value(False), Value(True))
ONLY_ON_BEHALF = (Value(False), Value(True))
IS_ALLOWED = (Value(True), Value(False, Refusal("taxpayer_not_allowed")))
SOURCE = LoginSource("192.0.2.1")
ALLOWED_NETWORKS = (
    Value(()),
    Value(("2001:db8::/32", "192.0.2.0/29")),
    Value(("192.0.2.8/29",), Refusal("source_network_not_allowed", detail="192.0.2.1")),
)
HELD_SCOPES = (Value(("A", "B")), Value(("A",)), Value(()))
# What a client asks for is its wish, so its values have no order.
ASKED_SCOPES: tuple[Asked, ...] = (None, ("A", "B"), ("A", "Unknown"))

Dimensions = Sequence[Sequence[Value]]
# All values of all facts together are too many, so there are two sets of states: in the first one
# nothing is limited; in the second one each limit has all of its values, and of the other facts
# each is as generous and as strict as it can be.
SECRET: Dimensions = (SECRET_EXPIRES_AT, SECRET_REVOKED_AT, ALLOWED_NETWORKS[:1])
CLIENT: Dimensions = (
    *(BLOCKED_AT, EXPIRES_AT, TAXPAYER_IS_ACTIVE, ROLE, HELD_SCOPES),
    *(ALLOWED_PERMISSIONS[:1], HAS_ALLOWED_TAXPAYERS[:1], ONLY_ON_BEHALF[:1]),
)
REPRESENTED: Dimensions = (
    *(REPRESENTED_IS_ACTIVE, *[IS_GRANTED] * len(PERMISSIONS)),
    IS_ALLOWED[:1],
)


def extremes(dimensions: Dimensions) -> list[Sequence[Value]]:
    return [values if len(values) == 1 else (values[0], values[-1]) for values in dimensions]


OWN_LIMITS = (ALLOWED_PERMISSIONS, HAS_ALLOWED_TAXPAYERS, ONLY_ON_BEHALF)
LIMITS = (ALLOWED_NETWORKS, *OWN_LIMITS, IS_ALLOWED)
LIMITED_SECRET: Dimensions = (*extremes(SECRET[:-1]), ALLOWED_NETWORKS)
LIMITED_CLIENT: Dimensions = (*extremes(CLIENT[:-3]), *OWN_LIMITS)
LIMITED_REPRESENTED: Dimensions = (*extremes(REPRESENTED[:-1]), IS_ALLOWED)


# --- The states, and what the contract says -----------------------------------------------------
class Secret(NamedTuple):
    facts: CredentialFacts
    refusal: Refusal | None


class Client(NamedTuple):
    facts: ClientFacts
    refusal: Refusal | None
    role_refusal: Refusal | None  # where another taxpayer is named
    own_refusal: Refusal | None  # where none is
    limit_refusal: Refusal | None  # where one is, and its permission is in force


class Represented(NamedTuple):
    facts: RepresentedFacts | None
    refusal: Refusal | None


class State(NamedTuple):
    secret: Secret
    client: Client
    represented: Represented

    @property
    def is_on_behalf(self) -> bool:
        return self.represented.facts is not None


NONE = Represented(None, None)  # a taxpayer logs in for itself


def states(
    secret: Dimensions = SECRET, client: Dimensions = CLIENT, represented: Dimensions = ()
) -> Iterator[State]:
    """Each combination of these values, the last one changing first."""
    return map(State._make, product(secrets(secret), clients(client), taxpayers(represented)))


def secrets(dimensions: Dimensions) -> list[Secret]:
    return [
        Secret(
            CredentialFacts(51, "7aQ2", expires.fact, revoked.fact, allowed_networks=networks.fact),
            first(expires, revoked, networks),
        )
        for expires, revoked, networks in product(*dimensions)
    ]


def clients(dimensions: Dimensions) -> list[Client]:
    return [
        Client(
            ClientFacts(
                id=41,
                client_id=CLIENT_ID,
                taxpayer=OWN,
                taxpayer_is_active=is_active.fact,
                scopes=held.fact,
                logins_per_minute=12,
                blocked_at=blocked.fact,
                expires_at=expires.fact,
                intermediary=role.fact,
                allowed_permissions=codes.fact,
                has_allowed_taxpayers=has_taxpayers.fact,
                only_on_behalf=only.fact,
            ),
            first(blocked, expires, is_active),
            role.refusal,
            Refusal("own_taxpayer_not_allowed") if any(one.fact for one in limits) else None,
            codes.refusal,
        )
        for blocked, expires, is_active, role, held, *limits in product(*dimensions)
        for codes, has_taxpayers, only in [limits]
    ]


def taxpayers(dimensions: Dimensions) -> list[Represented]:
    if not dimensions:
        return [NONE]
    found = []
    for is_active, *granted, is_allowed in product(*dimensions):
        both = zip(PERMISSIONS.values(), granted, strict=True)
        permissions = tuple(permission for permission, is_granted in both if is_granted.fact)
        facts = RepresentedFacts(OTHER, is_active.fact, permissions, is_allowed.fact)
        refusal = permission_refusal(*(is_granted.fact for is_granted in granted))
        refusal = refusal if is_active.fact else Refusal("no_permission")
        found.append(Represented(facts, is_allowed.refusal or refusal))
    return found


def first(*values: Value) -> Refusal | None:
    """Of several faults the one that the contract names first."""
    return next((value.refusal for value in values if value.refusal), None)


def permission_refusal(
    in_force: bool, to_come: bool, expired: bool, revoked: bool
) -> Refusal | None:
    """Of several permissions the most useful answer: one to come, then the one that ended last."""
    if in_force:
        return None
    if to_come:
        return Refusal("permission_not_yet_valid", ahead(6))
    if expired:
        return Refusal("permission_expired", ago(7))
    return Refusal("permission_revoked", ago(8)) if revoked else Refusal("no_permission")


@cache
def scope_refusal(asked: Asked, held: tuple[str, ...]) -> Refusal | None:
    """An unknown scope, which is named, or nothing left."""
    for scope in asked or ():
        if scope not in KNOWN_SCOPES:
            return Refusal("invalid_scope", parameter="scope", detail=scope)
    return None if allowed_scopes(asked, held) else Refusal("invalid_scope", parameter="scope")


@cache
def allowed_scopes(asked: Asked, held: tuple[str, ...]) -> frozenset[str]:
    """What is asked for, or everything, as far as the client may have it."""
    return frozenset(KNOWN_SCOPES if asked is None else asked) & frozenset(held)


def refusal(state: State, asked: Asked) -> Refusal | None:
    """The first refusal in the contract's order; None: there is a token."""
    secret, client, represented = state
    return (
        secret.refusal
        or client.refusal
        or (client.role_refusal if represented.facts else client.own_refusal)
        or represented.refusal
        or (client.limit_refusal if represented.facts else None)
        or scope_refusal(asked, client.facts.scopes)
    )


def expected(state: State, asked: Asked) -> Outcome:
    refused = refusal(state, asked)
    if refused:
        return refused
    scopes = allowed_scopes(asked, state.client.facts.scopes)
    if not state.is_on_behalf:
        return Granted(OWN, None, scopes, frozenset())  # no codes: it may do everything
    granted = frozenset({"view", "submit"})
    limit = frozenset(state.client.facts.allowed_permissions)
    return Granted(OTHER, OWN, scopes, granted & limit if limit else granted)


# --- What the service decides -------------------------------------------------------------------
def facts_of(state: State) -> Facts:
    return Facts(state.client.facts, state.secret.facts, state.represented.facts)


def decided(state: State, asked: Asked) -> Outcome:
    return outcome_of(AuthorizationRequest(facts_of(state), asked, KNOWN_SCOPES, AT, source=SOURCE))


def outcome_of(request: AuthorizationRequest) -> Outcome:
    """What the service decides, in the form in which the contract's outcomes are written here."""
    try:
        granted = decide(request)
    except Refused as refused:
        return Refusal(refused.reason, refused.since, refused.parameter, refused.detail)
    scopes, codes = frozenset(granted.scopes), frozenset(granted.permissions)
    return Granted(granted.subject, granted.actor, scopes, codes)


EVERYTHING = frozenset({"view", "submit", "cancel", "reject"})


@cache
def allows(outcome: Outcome) -> frozenset[str]:
    """Everything that it allows; nothing, if it is a refusal. A token for oneself has no limit."""
    if isinstance(outcome, Refusal):
        return frozenset()
    codes = EVERYTHING if outcome.actor is None else outcome.codes
    return frozenset({f"a token for {outcome.subject}"}) | outcome.scopes | codes


IN_ORDER = next(states())
