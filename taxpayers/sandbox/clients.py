"""The clients of the sandbox: each always behaves in one way, and its secret is public. Pure.

Their ids and secrets are those of the test environment, so a live service refuses them by their
form: no setting can switch them on there.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from taxpayers.credentials import Credentials, public_credentials
from taxpayers.rules import RegistryReason


class SandboxName(StrEnum):
    """The names of the clients; those that are refused are named by the reason."""

    WORKS = "works"
    ONE_LOGIN_A_MINUTE = "one_login_a_minute"
    TOKEN_FOR_A_MINUTE = "token_for_a_minute"
    SECRET_ENDS_TOMORROW = "secret_ends_tomorrow"
    SYSTEM_WARNING = "system_warning"
    INTERMEDIARY = "intermediary"
    SECRET_EXPIRED = RegistryReason.SECRET_EXPIRED
    SECRET_REVOKED = RegistryReason.SECRET_REVOKED
    SOURCE_NETWORK_NOT_ALLOWED = RegistryReason.SOURCE_NETWORK_NOT_ALLOWED
    DPOP_PROOF_MISSING = RegistryReason.DPOP_PROOF_MISSING
    CERTIFICATE_MISSING = RegistryReason.CERTIFICATE_MISSING
    RATE_LIMITED = "rate_limited"
    SYSTEM_USER_BLOCKED = RegistryReason.SYSTEM_USER_BLOCKED
    SYSTEM_USER_EXPIRED = RegistryReason.SYSTEM_USER_EXPIRED
    TAXPAYER_INACTIVE = RegistryReason.TAXPAYER_INACTIVE
    NOT_AN_INTERMEDIARY = RegistryReason.NOT_AN_INTERMEDIARY
    INTERMEDIARY_INACTIVE = RegistryReason.INTERMEDIARY_INACTIVE
    OWN_TAXPAYER_NOT_ALLOWED = RegistryReason.OWN_TAXPAYER_NOT_ALLOWED
    TAXPAYER_NOT_ALLOWED = RegistryReason.TAXPAYER_NOT_ALLOWED
    NO_PERMISSION = RegistryReason.NO_PERMISSION
    PERMISSION_NOT_YET_VALID = RegistryReason.PERMISSION_NOT_YET_VALID
    PERMISSION_EXPIRED = RegistryReason.PERMISSION_EXPIRED
    PERMISSION_REVOKED = RegistryReason.PERMISSION_REVOKED
    PERMISSIONS_NOT_ALLOWED = RegistryReason.PERMISSIONS_NOT_ALLOWED
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    SERVER_ERROR = "server_error"


CREDENTIALS: Mapping[SandboxName, Credentials] = MappingProxyType(
    {name: public_credentials(f"sandbox {name}") for name in SandboxName}
)
_NAMES = {credentials.client_id: name for name, credentials in CREDENTIALS.items()}
SANDBOX_CLIENT_IDS = frozenset(_NAMES)


def sandbox_name(client_id: str) -> SandboxName | None:
    """Which client of the sandbox has this id; None: it is not of the sandbox."""
    return _NAMES.get(client_id)
