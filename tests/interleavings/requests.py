"""What clients ask in a run: mostly what is right, sometimes what is not."""

from collections import deque
from dataclasses import replace
from random import Random

from taxpayers.identifiers import TaxpayerId
from tests.interleavings.login import Asked
from tests.interleavings.registry import ClientRow, Registry
from tests.interleavings.world import SCOPES, UNKNOWN, Credentials

_SCOPES = (*[""] * 10, *[SCOPES[0]] * 6, *SCOPES, *[" ".join(SCOPES)] * 3, "UnknownAPI")


class Requests:
    """The requests of a run, one after the other."""

    def __init__(self, rng: Random, credentials: Credentials) -> None:
        self._rng = rng
        self._credentials = credentials
        self._latest: deque[Asked] = deque(maxlen=30)

    def next(self, registry: Registry) -> Asked:
        """One that was sent a moment ago, as a client repeats it, or another one."""
        if self._latest and self._rng.random() < 0.4:
            return replace(self._rng.choice(self._latest), address=_address(self._rng))
        asked = _random_request(self._rng, registry, self._credentials)
        self._latest.append(asked)
        return asked


def _random_request(rng: Random, registry: Registry, credentials: Credentials) -> Asked:
    """Of a client that the registry knows, or of an unknown one."""
    client = rng.choice(registry.system_users) if registry.system_users else None
    client_id, client_secret = credentials.unknown
    if client and rng.random() < 0.97:
        client_id = client.client_id
        owner = client if rng.random() < 0.97 else rng.choice(registry.system_users)
        client_secret = credentials.choose(rng, registry, owner.id)
    return Asked(
        client_id,
        client_secret,
        _represented(rng, registry, client),
        rng.choice(_SCOPES),
        _address(rng),
        "password" if rng.random() < 0.01 else "client_credentials",
    )


def _represented(rng: Random, registry: Registry, client: ClientRow | None) -> TaxpayerId | None:
    """Mostly somebody who granted something, if the client is one of an intermediary."""
    roles = [
        r.id for r in registry.intermediaries if client and r.taxpayer_id == client.taxpayer_id
    ]
    granted = [p.taxpayer_id for p in registry.granted_permissions if p.intermediary_id in roles]
    if rng.random() < (0.35 if granted else 0.8):
        return None
    if rng.random() < 0.03 or not registry.taxpayers:
        return UNKNOWN
    if granted and rng.random() < 0.8:
        return registry.taxpayer(rng.choice(granted)).identifier
    return rng.choice(registry.taxpayers).identifier


def _address(rng: Random) -> str:
    if rng.random() < 0.1:
        return f"10.9.9.{rng.randrange(3)}"  # callers that fail often
    return f"10.1.{rng.randrange(16)}.{rng.randrange(250)}"
