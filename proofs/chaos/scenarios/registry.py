"""Keys and secrets are rotated, and clients blocked or locked, while all callers log in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from proofs.chaos import callers
from proofs.chaos.callers import Caller, Kind
from proofs.chaos.load import Load
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenario, Stage
from tests.support.erp import Erp

_ROUNDS = 6
_CONNECTIONS, _LOCKED_SECONDS = 16, 0.3


class _Busy(Caller):
    """It logs in again as soon as it has an answer."""

    pause_seconds = 0.01


@contextmanager
def _many_connections(stage: Stage, caller: Caller) -> Iterator[None]:
    """As an ERP system with several workers; the proxy spreads them over both nodes."""
    busy = _Busy(caller.name, caller.kind, caller.erp, caller.on_behalf_of)
    load = Load([busy] * _CONNECTIONS, stage.cluster.connection_of)
    load.begin()
    try:
        yield
    finally:
        load.end()
        stage.load.answers += load.answers


def _rotate_key(stage: Stage) -> None:
    stage.begins()
    before = _published(stage)
    stage.cluster.manage("rotate_signing_key")
    stage.ends()
    for _ in range(60):  # each process reads the keys every 10 s
        if min(len(keys) for keys in _published(stage)) > max(len(keys) for keys in before):
            return
        stage.wait(0.5)
    raise AssertionError("a process does not publish the new key after 30 s")


def _published(stage: Stage) -> list[set[str]]:
    """The keys that each process publishes: of many connections to a node, each gets some."""
    return [
        {key["kid"] for key in stage.cluster.keys_of(node)}
        for node in stage.cluster.nodes
        for _ in range(8)
    ]


def _rotate_secrets(stage: Stage) -> None:
    manage = stage.cluster.manage
    stage.begins()
    for caller in stage.cluster.population.callers:
        if caller.kind is not Kind.HONEST:
            continue
        former = replace(caller, name=f"former secret of {caller.name}", erp=caller.erp)
        issued = manage("rotate_secret", caller.erp.client_id)
        caller.erp = Erp(issued["client_id"], issued["client_secret"])
        stage.probe(stage.cluster.nodes[0], former)  # both are good for a while
        stage.wait(0.2)
        manage("revoke_secret", former.erp.client_id, former.erp.client_secret[-4:])
        stage.forbid(former)
        for node in stage.cluster.nodes:
            stage.probe(node, former)
    stage.ends()


def _block_and_unblock(stage: Stage) -> None:
    """The next login on each node obeys each change."""
    cluster, blocked = stage.cluster, stage.cluster.population.blocked
    with _many_connections(stage, blocked):
        stage.begins()
        for _ in range(_ROUNDS):
            callers.block(cluster.manage, blocked)
            stage.forbid(blocked)
            if any(stage.probe(node, blocked).status != 400 for node in cluster.nodes):
                raise AssertionError("it was not refused at the next login")
            stage.wait(0.3)
            stage.permit(blocked)
            callers.unblock(cluster.manage, blocked)
            if not all(stage.probe(node, blocked).token for node in cluster.nodes):
                raise AssertionError("it got no token at the next login")
        stage.ends()
    stage.note(f"{_ROUNDS} times there and back, each asked of both nodes")


def _lock_client(stage: Stage) -> None:
    caller = stage.cluster.population.callers[0]
    stage.begins()
    with _many_connections(stage, caller), stage.cluster.connect() as session:
        for _ in range(_ROUNDS):
            with session.transaction():
                session.execute(
                    "SELECT FROM client_usage c JOIN system_users u ON u.id = c.system_user_id"
                    " WHERE u.client_id = %s FOR UPDATE OF c",
                    [caller.erp.client_id],
                )
                stage.wait(_LOCKED_SECONDS)
            stage.wait(_LOCKED_SECONDS)
    stage.ends()
    stage.note(f"{_ROUNDS} times for {_LOCKED_SECONDS} s, over {_CONNECTIONS} connections")


_NOBODY_ELSE = Promise(recovers_within=0, may_refuse=False)

SCENARIOS = (
    Scenario("rotate-key", "the signing key is rotated", _rotate_key, _NOBODY_ELSE),
    Scenario(
        "rotate-secrets",
        "every honest client gets a new secret, and the former one is revoked",
        _rotate_secrets,
        _NOBODY_ELSE,
    ),
    Scenario(
        "block",
        "a client with many connections is blocked and unblocked again and again",
        _block_and_unblock,
        _NOBODY_ELSE,
    ),
    Scenario(
        "locked-client",
        "the row of a client with many connections is locked for a moment, again and again",
        _lock_client,
        _NOBODY_ELSE,
    ),
)
