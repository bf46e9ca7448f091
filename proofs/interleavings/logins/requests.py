"""What clients ask in a run: mostly what is right, sometimes what is not."""

from dataclasses import replace
from datetime import datetime
from random import Random

from proofs.interleavings.logins.login import Asked
from proofs.interleavings.oracle.registry import ClientRow, Registry
from proofs.interleavings.state import RunState
from proofs.interleavings.world import SCOPES, UNKNOWN, Credentials
from taxpayers.identifiers import TaxpayerId
from tests.client_auth.key_erp import KeyPair

_SCOPES = (*[""] * 10, *[SCOPES[0]] * 6, *SCOPES, *[" ".join(SCOPES)] * 3, "UnknownAPI")

# How often a request is one of the latest again: their facts are those that nodes remember.
_REPEATS, _REPEATS_AFTER_CHANGE, _SHORTLY_AFTER = 0.6, 0.85, 20  # the last one: steps


def next_request(state: RunState) -> Asked:
    """One that was sent a moment ago, most of all after a change, or another one."""
    is_shortly_after = state.step - state.history.changed_in < _SHORTLY_AFTER
    repeats = _REPEATS_AFTER_CHANGE if is_shortly_after else _REPEATS
    if state.latest and state.rng.random() < repeats:
        return replace(state.rng.choice(state.latest), address=_address(state.rng))
    asked = _random_request(state.rng, state.history.present, state.credentials, state.time.now)
    state.latest.append(asked)
    return asked


def _random_request(
    rng: Random, registry: Registry, credentials: Credentials, now: datetime
) -> Asked:
    """Of a client that the registry knows, or of an unknown one."""
    client = _client(rng, registry, now)
    credential: str | KeyPair
    client_id, credential = credentials.unknown
    if client and rng.random() < 0.97:
        client_id = client.client_id
        owner = client if rng.random() < 0.97 else rng.choice(registry.system_users)
        credential = credentials.choose(rng, registry, owner.id, now)
    return Asked(
        client_id,
        credential,
        _represented(rng, registry, client),
        rng.choice(_SCOPES),
        _address(rng),
        "password" if rng.random() < 0.01 else "client_credentials",
    )


def _client(rng: Random, registry: Registry, now: datetime) -> ClientRow | None:
    """Mostly one that has a secret."""
    owners = {row.system_user_id for row in registry.credentials if row.is_live(now)}
    able = [row for row in registry.system_users if row.id in owners]
    rows = able if able and rng.random() < 0.9 else registry.system_users
    return rng.choice(rows) if rows else None


def _represented(rng: Random, registry: Registry, client: ClientRow | None) -> TaxpayerId | None:
    """Mostly a taxpayer that granted something, if the client is one of an intermediary."""
    roles = [
        r.id for r in registry.intermediaries if client and r.taxpayer_id == client.taxpayer_id
    ]
    granted = [p.taxpayer_id for p in registry.granted_permissions if p.intermediary_id in roles]
    if rng.random() < (0.35 if granted else 0.8):
        return None
    if rng.random() < 0.03 or not registry.taxpayers:
        return UNKNOWN
    if granted and rng.random() < 0.65:
        return registry.taxpayer(rng.choice(granted)).identifier
    return rng.choice(registry.taxpayers).identifier


def _address(rng: Random) -> str:
    if rng.random() < 0.1:
        return f"10.9.9.{rng.randrange(3)}"  # callers that fail often
    return f"10.1.{rng.randrange(16)}.{rng.randrange(250)}"
