"""May this client have a token, for whom, with what? (specification 3, contract 1 and 4). Pure.

`decide` is the only maker of an `Authorization`, and nothing is signed without one. Every `until`
and `expires_at` is the last moment at which a thing still holds; every `from` is the first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from taxpayers.identifiers import TaxpayerId


class Reason(StrEnum):
    """Why a login is refused: stable names, kept in login events (contract 1, in its order)."""

    METHOD_NOT_ALLOWED = "method_not_allowed"
    INSECURE_TRANSPORT = "insecure_transport"
    MALFORMED_REQUEST = "malformed_request"
    MISSING_PARAMETER = "missing_parameter"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    MALFORMED_ON_BEHALF_OF = "malformed_on_behalf_of"
    MALFORMED_CREDENTIALS = "malformed_credentials"
    INVALID_CREDENTIALS = "invalid_credentials"
    SECRET_EXPIRED = "secret_expired"
    SECRET_REVOKED = "secret_revoked"
    RATE_LIMITED = "rate_limited"
    SYSTEM_USER_BLOCKED = "system_user_blocked"
    SYSTEM_USER_EXPIRED = "system_user_expired"
    TAXPAYER_INACTIVE = "taxpayer_inactive"
    NOT_AN_INTERMEDIARY = "not_an_intermediary"
    INTERMEDIARY_INACTIVE = "intermediary_inactive"
    NO_PERMISSION = "no_permission"
    PERMISSION_NOT_YET_VALID = "permission_not_yet_valid"
    PERMISSION_EXPIRED = "permission_expired"
    PERMISSION_REVOKED = "permission_revoked"
    INVALID_SCOPE = "invalid_scope"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    SERVER_ERROR = "server_error"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A "no" with its reason; `since` is the date to tell, `detail` names what is at fault."""

    reason: Reason
    since: datetime | None = None
    detail: str = ""


class Refused(Exception):
    """Carries a `Refusal` to the one place that answers."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """The secret that matched."""

    id: int
    hint: str
    expires_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class IntermediaryFacts:
    is_active: bool
    active_until: datetime | None


@dataclass(frozen=True, slots=True)
class PermissionFacts:
    """One permission granted by the represented taxpayer to the client's intermediary."""

    codes: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    revoked_at: datetime | None

    @property
    def ended_at(self) -> datetime | None:
        """The last moment of force; None if none is known. A revocation takes force at once."""
        ends = [moment for moment in (self.valid_until, self.revoked_at) if moment is not None]
        return min(ends) if ends else None


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the registry knows of a client, its own taxpayer and its role."""

    id: int
    client_id: str
    taxpayer: TaxpayerId
    taxpayer_is_active: bool
    scopes: tuple[str, ...]
    logins_per_minute: int
    blocked_at: datetime | None
    expires_at: datetime | None
    intermediary: IntermediaryFacts | None


@dataclass(frozen=True, slots=True)
class RepresentedFacts:
    """What the registry knows of the taxpayer named by `onbehalfof`, seen from the client.

    `is_active` is None when there is no such taxpayer.
    """

    taxpayer: TaxpayerId
    is_active: bool | None
    permissions: tuple[PermissionFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the registry says about one attempt."""

    client: ClientFacts
    secret: SecretFacts
    represented: RepresentedFacts | None = None


@dataclass(frozen=True, slots=True)
class Authorization:
    """The permission to be issued one token. Only `decide` makes one.

    `permissions` is empty unless there is an actor; `asked_scopes` is None if nothing was asked.
    """

    client_id: str
    subject: TaxpayerId
    actor: TaxpayerId | None
    scopes: tuple[str, ...]
    asked_scopes: tuple[str, ...] | None
    permissions: tuple[str, ...]
    at: datetime

    @property
    def scopes_differ(self) -> bool:
        """Whether the client must be told what it got (specification 2.1, RFC 6749 section 5.1)."""
        return self.asked_scopes is None or set(self.asked_scopes) != set(self.scopes)


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What is decided: the facts, the scopes asked for (None: nothing) and known, the moment."""

    facts: Facts
    asked_scopes: tuple[str, ...] | None
    known_scopes: tuple[str, ...]
    at: datetime


def decide(question: AuthorizationRequest) -> Authorization | Refusal:
    """The decision about one login: the first rule that fails refuses it."""
    for _reasons, rule in RULES:
        refusal = rule(question)
        if refusal is not None:
            return refusal
    client, represented = question.facts.client, question.facts.represented
    return Authorization(
        client_id=client.client_id,
        subject=represented.taxpayer if represented else client.taxpayer,
        actor=client.taxpayer if represented else None,
        scopes=_granted_scopes(question),
        asked_scopes=question.asked_scopes,
        permissions=_codes_in_force(represented, question.at) if represented else (),
        at=question.at,
    )


def is_over(until: datetime | None, at: datetime) -> bool:
    """Whether the last moment has passed; None never passes."""
    return until is not None and at > until


def is_in_force(permission: PermissionFacts, at: datetime) -> bool:
    """From its first moment to its last, unless it was revoked before."""
    revoked = permission.revoked_at is not None and permission.revoked_at <= at
    return permission.valid_from <= at and not revoked and not is_over(permission.valid_until, at)


def _secret_expired(q: AuthorizationRequest) -> Refusal | None:
    until = q.facts.secret.expires_at
    return Refusal(Reason.SECRET_EXPIRED, until) if is_over(until, q.at) else None


def _secret_revoked(q: AuthorizationRequest) -> Refusal | None:
    revoked_at = q.facts.secret.revoked_at
    revoked = revoked_at is not None and revoked_at <= q.at
    return Refusal(Reason.SECRET_REVOKED, revoked_at) if revoked else None


def _system_user_blocked(q: AuthorizationRequest) -> Refusal | None:
    blocked_at = q.facts.client.blocked_at
    blocked = blocked_at is not None and blocked_at <= q.at
    return Refusal(Reason.SYSTEM_USER_BLOCKED, blocked_at) if blocked else None


def _system_user_expired(q: AuthorizationRequest) -> Refusal | None:
    until = q.facts.client.expires_at
    return Refusal(Reason.SYSTEM_USER_EXPIRED, until) if is_over(until, q.at) else None


def _taxpayer_inactive(q: AuthorizationRequest) -> Refusal | None:
    return None if q.facts.client.taxpayer_is_active else Refusal(Reason.TAXPAYER_INACTIVE)


def _not_an_intermediary(q: AuthorizationRequest) -> Refusal | None:
    missing = q.facts.represented is not None and q.facts.client.intermediary is None
    return Refusal(Reason.NOT_AN_INTERMEDIARY) if missing else None


def _intermediary_inactive(q: AuthorizationRequest) -> Refusal | None:
    role = q.facts.client.intermediary if q.facts.represented else None
    if role is None or (role.is_active and not is_over(role.active_until, q.at)):
        return None
    return Refusal(Reason.INTERMEDIARY_INACTIVE, role.active_until if role.is_active else None)


def _no_permission(q: AuthorizationRequest) -> Refusal | None:
    # Unknown, inactive and nothing granted are one answer: whether a TIN exists is not told.
    represented = q.facts.represented
    if represented is None or (represented.is_active and represented.permissions):
        return None
    return Refusal(Reason.NO_PERMISSION)


def _permission_not_in_force(q: AuthorizationRequest) -> Refusal | None:
    represented = q.facts.represented
    if represented is None or any(is_in_force(p, q.at) for p in represented.permissions):
        return None
    # One that is still to come is the best news; otherwise the one that ended last.
    coming = [p.valid_from for p in represented.permissions if _is_coming(p, q.at)]
    if coming:
        return Refusal(Reason.PERMISSION_NOT_YET_VALID, min(coming))
    last = max(represented.permissions, key=lambda p: p.ended_at or p.valid_from)
    revoked = last.revoked_at is not None and last.revoked_at == last.ended_at
    reason = Reason.PERMISSION_REVOKED if revoked else Reason.PERMISSION_EXPIRED
    return Refusal(reason, last.ended_at)


def _is_coming(permission: PermissionFacts, at: datetime) -> bool:
    return permission.valid_from > at and permission.revoked_at is None


def _invalid_scope(q: AuthorizationRequest) -> Refusal | None:
    unknown = [scope for scope in q.asked_scopes or () if scope not in q.known_scopes]
    if unknown:
        return Refusal(Reason.INVALID_SCOPE, detail=unknown[0])
    return None if _granted_scopes(q) else Refusal(Reason.INVALID_SCOPE)


# The contract's order. `rate_limited`, between the secret's rules and the system user's, is not
# here: it is no fact of the registry but is counted together with the record of the login.
RULES: tuple[tuple[tuple[Reason, ...], Callable[[AuthorizationRequest], Refusal | None]], ...] = (
    ((Reason.SECRET_EXPIRED,), _secret_expired),
    ((Reason.SECRET_REVOKED,), _secret_revoked),
    ((Reason.SYSTEM_USER_BLOCKED,), _system_user_blocked),
    ((Reason.SYSTEM_USER_EXPIRED,), _system_user_expired),
    ((Reason.TAXPAYER_INACTIVE,), _taxpayer_inactive),
    ((Reason.NOT_AN_INTERMEDIARY,), _not_an_intermediary),
    ((Reason.INTERMEDIARY_INACTIVE,), _intermediary_inactive),
    ((Reason.NO_PERMISSION,), _no_permission),
    (
        (Reason.PERMISSION_NOT_YET_VALID, Reason.PERMISSION_EXPIRED, Reason.PERMISSION_REVOKED),
        _permission_not_in_force,
    ),
    ((Reason.INVALID_SCOPE,), _invalid_scope),
)


def _granted_scopes(q: AuthorizationRequest) -> tuple[str, ...]:
    wanted = q.known_scopes if q.asked_scopes is None else q.asked_scopes
    return tuple(s for s in dict.fromkeys(wanted) if s in q.facts.client.scopes)


def _codes_in_force(represented: RepresentedFacts, at: datetime) -> tuple[str, ...]:
    in_force = (p.codes for p in represented.permissions if is_in_force(p, at))
    return tuple(sorted({code for codes in in_force for code in codes}))
