"""All scenarios, in the order of a full drill: what replaces the primary comes last."""

from proofs.chaos.scenarios import database, nodes

ALL = (*nodes.SCENARIOS, *database.SCENARIOS)
