"""The scopes that open the management API; operators add them to the setting SCOPES."""

CHANGE = "RegistryAPI"  # reads and changes
READ = "RegistryAPI:read"
MANAGEMENT_SCOPES = frozenset({CHANGE, READ})


def are_for_management(scopes: str) -> bool:
    """Whether a system user with these scopes, separated by blanks, may use the management API."""
    return not MANAGEMENT_SCOPES.isdisjoint(scopes.split())
