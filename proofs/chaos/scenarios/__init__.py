"""All scenarios, in the order of a full drill: what replaces the primary comes last."""

from proofs.chaos.scenarios import crowds, database, nodes

ALL = (*nodes.SCENARIOS, *crowds.SCENARIOS, *database.SCENARIOS)
