"""What clients ask in a run: mostly what is right, sometimes what is not."""

from random import Random

from taxpayers.identifiers import TaxpayerId
from tests.interleavings.login import Asked
from tests.interleavings.registry import Registry
from tests.interleavings.world import SCOPES, UNKNOWN, Credentials

_SCOPES = ("", "", "", SCOPES[0], SCOPES[0], SCOPES[1], " ".join(SCOPES), "UnknownAPI")


def random_request(rng: Random, registry: Registry, credentials: Credentials) -> Asked:
    """Of a client that the registry knows, or of an unknown one."""
    client_id, client_secret = _credentials(rng, registry, credentials)
    return Asked(
        client_id,
        client_secret,
        _represented(rng, registry),
        rng.choice(_SCOPES),
        _address(rng),
        **({"grant_type": "password"} if rng.random() < 0.01 else {}),
    )


def _credentials(rng: Random, registry: Registry, credentials: Credentials) -> tuple[str, str]:
    if rng.random() < 0.03 or not registry.system_users:
        return credentials.unknown
    client = rng.choice(registry.system_users)
    if rng.random() < 0.03:  # that of somebody else
        other = rng.choice(registry.system_users)
        return client.client_id, credentials.choose(rng, registry, other.id)
    return client.client_id, credentials.choose(rng, registry, client.id)


def _represented(rng: Random, registry: Registry) -> TaxpayerId | None:
    if rng.random() < 0.4:
        return None
    if rng.random() < 0.03 or not registry.taxpayers:
        return UNKNOWN
    return rng.choice(registry.taxpayers).identifier


def _address(rng: Random) -> str:
    if rng.random() < 0.1:
        return f"10.9.9.{rng.randrange(3)}"  # callers that fail often
    return f"10.1.{rng.randrange(16)}.{rng.randrange(250)}"
