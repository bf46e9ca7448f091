"""The management API as other rooms name it: where it is, and the scopes that open it.

It is below the address of the staff, never at that of clients. Operators add the scopes to SCOPES.
"""

from django.conf import settings

CHANGE = "RegistryAPI"  # reads and changes
READ = "RegistryAPI:read"
MANAGEMENT_SCOPES = frozenset({CHANGE, READ})


def are_for_management(scopes: str) -> bool:
    """Whether a system user with these scopes, separated by blanks, may use the management API."""
    return not MANAGEMENT_SCOPES.isdisjoint(scopes.split())


BASE_PATH = "api/v1/management"


def base_url() -> str:
    """The address of the staff, without a slash at its end."""
    address: str = settings.STAFF_URL
    return address.rstrip("/")
