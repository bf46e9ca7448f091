"""The duties of the management API, and the scopes that hold them (contract 4, "Duties"). Pure.

Who registers taxpayers or grants permissions does not issue credentials: a client that is invented,
or that acts without a permission, needs two people, or two programs.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Duty(StrEnum):
    """What one program of the authority does."""

    REGISTER = "register taxpayers"
    GRANT = "grant permissions"
    ISSUE = "issue credentials"
    WEBHOOKS = "manage webhooks"


WHOLE = "RegistryAPI"  # every duty at once
READ = "RegistryAPI:read"  # no duty: reads everything
SCOPE_OF_DUTY: Mapping[Duty, str] = {
    Duty.REGISTER: f"{WHOLE}:taxpayers",
    Duty.GRANT: f"{WHOLE}:permissions",
    Duty.ISSUE: f"{WHOLE}:credentials",
    Duty.WEBHOOKS: f"{WHOLE}:webhooks",
}
MANAGEMENT_SCOPES = frozenset({WHOLE, READ, *SCOPE_OF_DUTY.values()})


def are_for_management(scopes: str) -> bool:
    """Whether a system user with these scopes, separated by blanks, may use the management API."""
    return not MANAGEMENT_SCOPES.isdisjoint(scopes.split())


def duties_of(scopes: Collection[str]) -> frozenset[Duty]:
    """The duties that these scopes hold together."""
    if WHOLE in scopes:
        return frozenset(Duty)
    return frozenset(duty for duty, scope in SCOPE_OF_DUTY.items() if scope in scopes)


def must_be_separate(duties: Collection[Duty]) -> bool:
    """Whether these are duties that need two people, or two programs."""
    return Duty.ISSUE in duties and (Duty.REGISTER in duties or Duty.GRANT in duties)
