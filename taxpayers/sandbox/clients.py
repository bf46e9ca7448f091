"""The clients of the sandbox: each always behaves in one way, and its secret is public. Pure.

Their ids and secrets are those of the test environment, so a live service refuses them by their
form: no setting can switch them on there.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from taxpayers.credentials import Credentials, public_credentials


class SandboxName(StrEnum):
    """The names of the clients; those that are refused are named by the reason."""

    WORKS = "works"
    ONE_LOGIN_A_MINUTE = "one_login_a_minute"
    TOKEN_FOR_A_MINUTE = "token_for_a_minute"
    SECRET_ENDS_TOMORROW = "secret_ends_tomorrow"
    SYSTEM_WARNING = "system_warning"
    INTERMEDIARY = "intermediary"
    SECRET_EXPIRED = "secret_expired"
    SECRET_REVOKED = "secret_revoked"
    SOURCE_NETWORK_NOT_ALLOWED = "source_network_not_allowed"
    DPOP_PROOF_MISSING = "dpop_proof_missing"
    RATE_LIMITED = "rate_limited"
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
