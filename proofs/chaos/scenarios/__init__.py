"""All scenarios, in the order of a full drill: what replaces the primary comes last."""

from proofs.chaos.scenarios import (
    clocks,
    crowds,
    database,
    network,
    nodes,
    registry,
    restores,
)
from proofs.chaos.scenarios.scenario import Scenario

ALL: tuple[Scenario, ...] = (
    *nodes.SCENARIOS,
    *database.SCENARIOS,
    *crowds.SCENARIOS,
    *registry.SCENARIOS,
    *clocks.SCENARIOS,
    *restores.SCENARIOS,
    *network.SCENARIOS,
)
