"""The service or its database is away, and protected APIs go on: calls, blocks, restarts."""

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from proofs.chaos.callers import Caller, Kind, block
from proofs.chaos.promises import Promise
from proofs.chaos.protected_apis import REFUSED_WITHIN, Api, Callers, faults, start_apis
from proofs.chaos.scenarios.database import UNDER_WAY
from proofs.chaos.scenarios.scenario import Scenario, Stage
from proofs.chaos.site import OFFLINE_KEY
from tests.servers.service import manage

_HONEST, _BEFORE, _MEANWHILE = ("honest 1", "honest 2"), "blocked before", "blocked meanwhile"
_KNOWN_SECONDS = 3.0

Away = Callable[[Stage], Callable[[], None]]  # begins an outage; the result ends it


def _database(stage: Stage) -> Callable[[], None]:
    stage.cluster.primary.crash()
    return stage.cluster.primary.restart


def _nodes(stage: Stage) -> Callable[[], None]:
    for node in stage.cluster.nodes:
        node.kill()

    def end() -> None:
        for node in stage.cluster.nodes:
            node.start()

    return end


def _one_node(stage: Stage) -> Callable[[], None]:
    door = stage.cluster.nodes[0].door
    door.vanish()
    return door.come_back


def _block_offline(stage: Stage, caller: Caller) -> None:
    """As the runbook says: the command on one machine, and its file copied to the others."""
    first, *others = (node.service.environment for node in stage.cluster.nodes)
    key = ("--key", str(stage.cluster.folder / OFFLINE_KEY), "--reason", "drill")
    manage(first, "block_offline", caller.erp.client_id, *key)
    for other in others:
        folder = Path(other["VAR_DIR"]) / "offline-blocks"
        shutil.copytree(Path(first["VAR_DIR"]) / "offline-blocks", folder, dirs_exist_ok=True)
    stage.afterwards.callback(_remove_files, stage)


def _remove_files(stage: Stage) -> None:
    for node in stage.cluster.nodes:
        shutil.rmtree(Path(node.service.environment["VAR_DIR"]) / "offline-blocks")


def _go_on(stage: Stage, away: Away, seconds: float, number: int) -> None:
    cluster = stage.cluster
    erps = cluster.population.crowd[4 * number :]
    names = (*_HONEST, _BEFORE, _MEANWHILE)
    callers = {
        name: Caller(name, Kind.CHANGING, erp) for name, erp in zip(names, erps, strict=False)
    }
    tokens = {n: stage.probe(cluster.nodes[1], caller).token for n, caller in callers.items()}
    with ExitStack() as stack:
        certificate = cluster.balancer.folder / "certificate.pem"
        folder, url = cluster.folder / f"apis-{number}", cluster.balancer.ports.https_url
        apis = start_apis(stack, folder, url, certificate)
        calling = Callers(apis, tokens)
        stack.callback(calling.stop)
        stage.wait(_KNOWN_SECONDS)
        block(cluster.manage, callers[_BEFORE])
        refused_from = {_BEFORE: time.monotonic() + REFUSED_WITHIN}
        stage.wait(REFUSED_WITHIN)
        stage.begins()
        end = away(stage)
        stage.wait(0.3 * seconds)
        if away is _database:
            _block_offline(stage, callers[_MEANWHILE])
        else:
            block(_manage_alone(stage), callers[_MEANWHILE])
        if away is not _nodes:
            refused_from[_MEANWHILE] = time.monotonic() + REFUSED_WITHIN
        stage.wait(0.2 * seconds)
        for api in apis:
            api.restart()
        stage.wait(0.5 * seconds)
        end()
        stage.ends()
        if away is _nodes:
            refused_from[_MEANWHILE] = time.monotonic() + REFUSED_WITHIN
        elif away is _database:
            block(_manage_alone(stage), callers[_MEANWHILE])
        stage.wait(REFUSED_WITHIN + 2)
        calling.stop()
        _judge(stage, calling, apis, refused_from)


def _manage_alone(stage: Stage) -> Callable[..., object]:
    """A command on the last node's machine: its way to the database is never cut."""
    return partial(manage, stage.cluster.nodes[-1].service.environment)


def _judge(stage: Stage, calling: Callers, apis: list[Api], refused_from: dict[str, float]) -> None:
    honest = [one for one in calling.calls if one.client in _HONEST and not one.met_restart]
    passed = sum(one.status == 200 for one in honest)
    late = max(
        (
            one.at - (refused_from[_MEANWHILE] - REFUSED_WITHIN)
            for one in calling.calls
            if one.client == _MEANWHILE and one.status == 200
        ),
        default=0.0,
    )
    stage.note(
        f"{len(calling.calls):,} calls; {passed:,} of {len(honest):,} of honest clients passed"
        " (without those while an API itself restarted);"
        f" who was blocked meanwhile was accepted for {max(late, 0.0):.1f} s"
    )
    if found := faults(calling.calls, apis, refused_from):
        raise AssertionError("; ".join(found))


_EACH: tuple[tuple[str, str, Away], ...] = (
    ("apis-database", "The database is away", _database),
    ("apis-nodes", "All nodes are away", _nodes),
    ("apis-one-node", "One node is cut off from the database", _one_node),
)


def scenarios(seconds: float) -> tuple[Scenario, ...]:
    return tuple(
        Scenario(
            name,
            f"{title} for {seconds:g} s, APIs are restarted, a client is blocked meanwhile",
            partial(_go_on, away=away, seconds=seconds, number=number),
            Promise(recovers_within=8, answers_within=3, never_received=2 * UNDER_WAY),
        )
        for number, (name, title, away) in enumerate(_EACH)
    )
