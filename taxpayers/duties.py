"""The duties of staff and programs, and the scopes of the management API that hold them. Pure.

Who registers taxpayers or grants permissions does not issue credentials: a client that is invented,
or that acts without a permission, needs two people, or two programs (contract 4, "Duties").
"""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Duty(StrEnum):
    """What one person or one program of the authority does. To read is no duty."""

    REGISTER = "register taxpayers"
    GRANT = "grant permissions"
    ISSUE = "issue credentials"
    STOP = "stop clients"  # of the staff; a program that issues credentials stops clients as well
    ACCOUNTS = "manage staff accounts"
    AUDIT = "take lists out of the service"
    WEBHOOKS = "manage webhooks"


WHOLE = "RegistryAPI"  # every duty of programs at once
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
    return frozenset(
        duty for duty, scope in SCOPE_OF_DUTY.items() if scope in scopes or WHOLE in scopes
    )


def must_be_separate(duties: Collection[Duty]) -> bool:
    """Whether these are duties that need two people, or two programs."""
    return Duty.ISSUE in duties and (Duty.REGISTER in duties or Duty.GRANT in duties)
