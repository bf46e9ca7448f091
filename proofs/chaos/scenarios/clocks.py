"""The clock of a node is set forward and back under load."""

from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.scenario import Scenario, Stage
from tests.servers.fake_clock import fake_clock

_STEPS = (3600, -3600, 5, -5)
_WRONG_SECONDS, _RIGHT_SECONDS = 2.5, 1.5


def _step(stage: Stage) -> None:
    node, right = stage.cluster.nodes[1], stage.cluster.nodes[1].service.environment
    clock = fake_clock(stage.cluster.folder / "clock")
    caller = stage.cluster.population.callers[0]
    node.stop_in_order()
    node.start({**right, **clock.environment})
    stage.afterwards.callback(node.start, right)
    stage.afterwards.callback(node.stop_in_order)
    stage.begins()
    for seconds in _STEPS:
        clock.step(seconds)
        stage.wait(_WRONG_SECONDS)
        if stage.probe(node, caller).status != 503:
            raise AssertionError(f"a node whose clock is {seconds:+d} s off answered a login")
        clock.step(0)
        stage.wait(_RIGHT_SECONDS)
    stage.ends()


SCENARIOS = (
    Scenario(
        "clock-steps",
        "the clock of one node is set forward and back by an hour and by 5 s",
        _step,
        Promise(recovers_within=2, never_received=2),
    ),
)
