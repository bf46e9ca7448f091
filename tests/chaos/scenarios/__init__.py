"""All scenarios, in the order of a full drill: what replaces the primary comes last."""

from tests.chaos.scenarios import (
    clocks,
    crowds,
    database,
    network,
    nodes,
    registry,
    restores,
)
from tests.chaos.scenarios.scenario import Scenario

ALL: tuple[Scenario, ...] = (
    *nodes.SCENARIOS,
    *database.SCENARIOS,
    *crowds.SCENARIOS,
    *registry.SCENARIOS,
    *clocks.SCENARIOS,
    *restores.SCENARIOS,
    *network.SCENARIOS,
)
