"""The clients of the sandbox: each always behaves in one way, and its secret is public. Pure.

Their ids and secrets are those of the test environment, so a live service refuses them by their
form: no setting can switch them on there.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from taxpayers.credentials import Credentials, hash_secret, is_same_secret, public_credentials
from taxpayers.rules import RegistryReason


class SandboxName(StrEnum):
    """Those that no rule of the registry refuses; each of the others has the name of its reason."""

    WORKS = "works"
    ONE_LOGIN_A_MINUTE = "one_login_a_minute"
    TOKEN_FOR_A_MINUTE = "token_for_a_minute"
    SECRET_ENDS_TOMORROW = "secret_ends_tomorrow"
    SYSTEM_WARNING = "system_warning"
    INTERMEDIARY = "intermediary"
    RATE_LIMITED = "rate_limited"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    SERVER_ERROR = "server_error"


# Any client can be refused for its scope.
NAMES: tuple[str, ...] = (
    *SandboxName,
    *(reason for reason in RegistryReason if reason != RegistryReason.INVALID_SCOPE),
)
CREDENTIALS: Mapping[str, Credentials] = MappingProxyType(
    {name: public_credentials(f"sandbox {name}") for name in NAMES}
)
_NAMES = {credentials.client_id: name for name, credentials in CREDENTIALS.items()}
SANDBOX_CLIENT_IDS = frozenset(_NAMES)


def sandbox_name(client_id: str) -> str:
    """Which client of the sandbox has this id; empty: it is not of the sandbox."""
    return _NAMES.get(client_id, "")


def proved_name(client_id: str, lookup: str) -> str:
    """The same, only for its right secret, of which `lookup` is the hash."""
    name = sandbox_name(client_id)
    is_proved = name and is_same_secret(lookup, hash_secret(CREDENTIALS[name].client_secret))
    return name if is_proved else ""
