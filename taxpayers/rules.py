"""May a client have a token, for which taxpayer, with what? (specification 3, contract 1, 4). Pure.

`decide` is the only maker of an `Authorization`, and nothing is signed without one. What is blocked
or revoked is so whatever the clock says: its date is for people.
"""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from taxpayers.facts.source_networks import LoginSource, is_within
from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.facts.validity import is_in_force, is_over, may_act_for_others
from taxpayers.facts.values import (
    ClientFacts,
    CredentialFacts,
    Facts,
    PermissionFacts,
    RepresentedFacts,
)
from taxpayers.identifiers import TaxpayerId
from taxpayers.value import Value


class RegistryReason(StrEnum):
    """Why the registry refuses a login: stable names, stored in login events (contract 1)."""

    SECRET_EXPIRED = "secret_expired"
    SECRET_REVOKED = "secret_revoked"
    SOURCE_NETWORK_NOT_ALLOWED = "source_network_not_allowed"
    DPOP_PROOF_MISSING = "dpop_proof_missing"
    CERTIFICATE_MISSING = "certificate_missing"
    SYSTEM_USER_BLOCKED = "system_user_blocked"
    SYSTEM_USER_EXPIRED = "system_user_expired"
    TAXPAYER_INACTIVE = "taxpayer_inactive"
    NOT_AN_INTERMEDIARY = "not_an_intermediary"
    INTERMEDIARY_INACTIVE = "intermediary_inactive"
    OWN_TAXPAYER_NOT_ALLOWED = "own_taxpayer_not_allowed"
    TAXPAYER_NOT_ALLOWED = "taxpayer_not_allowed"
    NO_PERMISSION = "no_permission"
    PERMISSION_NOT_YET_VALID = "permission_not_yet_valid"
    PERMISSION_EXPIRED = "permission_expired"
    PERMISSION_REVOKED = "permission_revoked"
    PERMISSIONS_NOT_ALLOWED = "permissions_not_allowed"
    INVALID_SCOPE = "invalid_scope"


class Refused(Exception):
    """A login gets no token: the one way to say so, from the first byte to the record.

    `since` is the date that the refusal names, `parameter` the parameter at fault, `detail` what is
    wrong with it. What a reason means is for others to say.
    """

    def __init__(
        self,
        reason: str,
        *,
        since: datetime | None = None,
        parameter: str = "",
        detail: str = "",
    ) -> None:
        super().__init__(reason, since, parameter, detail)
        self.reason = reason
        self.since = since
        self.parameter = parameter
        self.detail = detail


OWN_TAXPAYER = "own_taxpayer"  # the detail: onbehalfof names the client's own taxpayer


class Authorization(Value):
    """The permission to be issued one token, bound to `confirmation`. Only `decide` makes one.

    `permissions` is empty unless there is an actor; `asked_scopes` is None if none was asked for.
    """

    client_id: str
    subject: TaxpayerId
    actor: TaxpayerId | None
    scopes: tuple[str, ...]
    asked_scopes: tuple[str, ...] | None
    permissions: tuple[str, ...]
    at: datetime
    confirmation: Confirmation = UNBOUND

    @property
    def scopes_differ(self) -> bool:
        """Whether the client must be told what it got (specification 2.1, RFC 6749 section 5.1)."""
        return self.asked_scopes is None or set(self.asked_scopes) != set(self.scopes)


class AuthorizationRequest(Value):
    """What is decided: the facts, the scopes asked for (None: none) and known, the moment."""

    facts: Facts
    asked_scopes: tuple[str, ...] | None
    known_scopes: tuple[str, ...]
    at: datetime
    confirmation: Confirmation = UNBOUND  # what the client has proved to possess
    source: LoginSource | None = None  # None where there is no login: a network ends no token


def decide(request: AuthorizationRequest) -> Authorization:
    """The decision about one login. Raises Refused with the reason of the first rule that fails."""
    for rule in RULES:
        rule(request)
    client, represented = request.facts.client, request.facts.represented
    return Authorization(
        client_id=client.client_id,
        subject=represented.taxpayer if represented else client.taxpayer,
        actor=client.taxpayer if represented else None,
        scopes=_granted_scopes(request),
        asked_scopes=request.asked_scopes,
        permissions=_allowed_codes(client, represented, request.at) if represented else (),
        at=request.at,
        confirmation=request.confirmation,
    )


def required_confirmation(facts: Facts) -> Confirmation:
    """For questions about logins that are not sent: one that proves what this client must."""
    return Confirmation(facts.client.token_binding)


def check_credential(credential: CredentialFacts, at: datetime) -> None:
    """Raises Refused if what matched has ended: all that callers ask who only authenticate."""
    if is_over(credential.expires_at, at):
        raise Refused(
            RegistryReason.SECRET_EXPIRED,
            since=credential.expires_at,
            parameter=credential.parameter,
        )
    if credential.revoked_at is not None:
        raise Refused(
            RegistryReason.SECRET_REVOKED,
            since=credential.revoked_at,
            parameter=credential.parameter,
        )


def _credential_has_not_ended(request: AuthorizationRequest) -> None:
    check_credential(request.facts.credential, request.at)


def _source_network_is_allowed(request: AuthorizationRequest) -> None:
    networks, source = request.facts.credential.allowed_networks, request.source
    if networks and source is not None and not is_within(source, networks):
        raise Refused(
            RegistryReason.SOURCE_NETWORK_NOT_ALLOWED,
            parameter=request.facts.credential.parameter,
            detail=source.address or "",
        )


def _token_is_bound_as_required(request: AuthorizationRequest) -> None:
    required = request.facts.client.token_binding
    if required not in (TokenBinding.BEARER, request.confirmation.binding):
        raise Refused(
            RegistryReason.CERTIFICATE_MISSING
            if required == TokenBinding.TLS
            else RegistryReason.DPOP_PROOF_MISSING
        )


def _system_user_is_not_blocked(request: AuthorizationRequest) -> None:
    blocked_at = request.facts.client.blocked_at
    if blocked_at is not None:
        raise Refused(RegistryReason.SYSTEM_USER_BLOCKED, since=blocked_at)


def _system_user_is_not_expired(request: AuthorizationRequest) -> None:
    until = request.facts.client.expires_at
    if is_over(until, request.at):
        raise Refused(RegistryReason.SYSTEM_USER_EXPIRED, since=until)


def _taxpayer_is_active(request: AuthorizationRequest) -> None:
    if not request.facts.client.taxpayer_is_active:
        raise Refused(RegistryReason.TAXPAYER_INACTIVE)


def _taxpayer_is_an_intermediary(request: AuthorizationRequest) -> None:
    if request.facts.represented is not None and request.facts.client.intermediary is None:
        raise Refused(RegistryReason.NOT_AN_INTERMEDIARY, detail=_whose(request))


def _whose(request: AuthorizationRequest) -> str:
    """For a client that could log in as the taxpayer that it names."""
    represented, client = request.facts.represented, request.facts.client
    is_own = represented is not None and represented.taxpayer == client.taxpayer
    return OWN_TAXPAYER if is_own and not client.is_limited else ""


def _intermediary_is_active(request: AuthorizationRequest) -> None:
    role = request.facts.client.intermediary if request.facts.represented else None
    if role is None or may_act_for_others(role, request.at):
        return
    since = role.active_until if role.is_active else None
    raise Refused(RegistryReason.INTERMEDIARY_INACTIVE, since=since)


def _taxpayer_is_allowed(request: AuthorizationRequest) -> None:
    # Before anything that depends on the taxpayer named, so that one outside of the limit gets one
    # answer, be it registered or not. A token for its own taxpayer has no permissions, which means
    # that it may do everything: more than a client that is limited to some may ever get.
    client, represented = request.facts.client, request.facts.represented
    if represented is None and client.is_limited:
        raise Refused(RegistryReason.OWN_TAXPAYER_NOT_ALLOWED)
    if represented is not None and not represented.is_allowed:
        raise Refused(RegistryReason.TAXPAYER_NOT_ALLOWED)


def _permission_is_granted(request: AuthorizationRequest) -> None:
    # Unknown, inactive and nothing granted get one answer: whether a TIN exists is not revealed.
    represented = request.facts.represented
    if represented is not None and not (represented.is_active and represented.permissions):
        raise Refused(RegistryReason.NO_PERMISSION, detail=_whose(request))


def _permission_is_in_force(request: AuthorizationRequest) -> None:
    represented, at = request.facts.represented, request.at
    if represented is None or any(is_in_force(p, at) for p in represented.permissions):
        return
    # The most useful answer: one that is still to come; otherwise the one that ended last.
    coming = [p.valid_from for p in represented.permissions if _is_coming(p, at)]
    if coming:
        raise Refused(RegistryReason.PERMISSION_NOT_YET_VALID, since=min(coming))
    last = max(represented.permissions, key=lambda p: p.ended_at or p.valid_from)
    if last.revoked_at is not None and not _expired_before(last, last.revoked_at, at):
        raise Refused(RegistryReason.PERMISSION_REVOKED, since=last.revoked_at)
    raise Refused(RegistryReason.PERMISSION_EXPIRED, since=last.valid_until)


def _expired_before(permission: PermissionFacts, moment: datetime, at: datetime) -> bool:
    until = permission.valid_until
    return until is not None and is_over(until, at) and until < moment


def _is_coming(permission: PermissionFacts, at: datetime) -> bool:
    return permission.valid_from > at and permission.revoked_at is None


def _permissions_are_allowed(request: AuthorizationRequest) -> None:
    client, represented = request.facts.client, request.facts.represented
    if represented is None or not client.allowed_permissions:
        return
    if not _allowed_codes(client, represented, request.at):
        raise Refused(RegistryReason.PERMISSIONS_NOT_ALLOWED)


def _scope_is_allowed(request: AuthorizationRequest) -> None:
    for scope in request.asked_scopes or ():
        if scope not in request.known_scopes:
            raise Refused(RegistryReason.INVALID_SCOPE, parameter="scope", detail=scope)
    if not _granted_scopes(request):
        raise Refused(RegistryReason.INVALID_SCOPE, parameter="scope")


# The contract's order. `rate_limited`, between the secret's rules and the system user's, is not
# here: it is no fact of the registry but is counted together with the record of the login.
RULES: tuple[Callable[[AuthorizationRequest], None], ...] = (
    _credential_has_not_ended,
    _source_network_is_allowed,
    _token_is_bound_as_required,
    _system_user_is_not_blocked,
    _system_user_is_not_expired,
    _taxpayer_is_active,
    _taxpayer_is_an_intermediary,
    _intermediary_is_active,
    _taxpayer_is_allowed,
    _permission_is_granted,
    _permission_is_in_force,
    _permissions_are_allowed,
    _scope_is_allowed,
)


def _granted_scopes(request: AuthorizationRequest) -> tuple[str, ...]:
    wanted = request.known_scopes if request.asked_scopes is None else request.asked_scopes
    return tuple(s for s in dict.fromkeys(wanted) if s in request.facts.client.scopes)


def _codes_in_force(represented: RepresentedFacts, at: datetime) -> tuple[str, ...]:
    in_force = (p.codes for p in represented.permissions if is_in_force(p, at))
    return tuple(sorted({code for codes in in_force for code in codes}))


def _allowed_codes(
    client: ClientFacts, represented: RepresentedFacts, at: datetime
) -> tuple[str, ...]:
    """What the taxpayer granted, as far as the client is not limited to less."""
    codes = _codes_in_force(represented, at)
    allowed = client.allowed_permissions
    return tuple(code for code in codes if code in allowed) if allowed else codes
