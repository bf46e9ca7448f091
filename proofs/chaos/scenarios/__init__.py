"""All scenarios, in the order of a full drill: what replaces the primary comes last."""

from proofs.chaos.scenarios import crowds, database, network, nodes
from proofs.chaos.scenarios.scenario import Scenario

ALL: tuple[Scenario, ...] = (
    *nodes.SCENARIOS,
    *database.SCENARIOS,
    *crowds.SCENARIOS,
    *network.SCENARIOS,
)
