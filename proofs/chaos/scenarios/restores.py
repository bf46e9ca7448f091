"""A backup is restored under load, beside nodes that remember newer facts and older ones."""

from dataclasses import replace

from proofs.chaos import callers
from proofs.chaos.callers import Caller, Kind
from proofs.chaos.promises import Promise
from proofs.chaos.scenarios.database import UNDER_WAY
from proofs.chaos.scenarios.scenario import Scenario, Stage
from tests.support.erp import Erp


def _restore(stage: Stage) -> None:
    """`newer` is unblocked after the dump, `older` was blocked before it: both may not log in.

    The nodes remember of `newer` what the dump does not know yet, and of `older` what the dump
    knows to be over.
    """
    cluster = stage.cluster
    newer = cluster.population.blocked
    older = _another(stage)
    for node in cluster.nodes:
        _expect(bool(stage.probe(node, older).token), "older logs in before it is blocked")
    callers.block(cluster.manage, older)
    callers.block(cluster.manage, newer)
    dump = str(cluster.primary.folder / "identity.sql")
    cluster.primary.run("pg_dump", "--dbname", cluster.database_url, f"--file={dump}")
    callers.unblock(cluster.manage, newer)
    for node in cluster.nodes:
        _expect(bool(stage.probe(node, newer).token), "newer logs in after the dump")
    stage.begins()
    # As in the runbook of docs/reliability.md: all of it, or nothing.
    cluster.primary.run(
        *("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--single-transaction"),
        *("--command=DROP SCHEMA public CASCADE", "--command=CREATE SCHEMA public"),
        *(f"--file={dump}", cluster.database_url),
    )
    stage.forbid(newer)
    stage.forbid(older)
    stage.ends()
    stage.lost_until = stage.ended_at
    for node in cluster.nodes:
        for caller in (newer, older):
            _expect(stage.probe(node, caller).status == 400, f"{caller.name} is refused")
    stage.note("the events between dump and restore are lost, as those of any older backup are")
    stage.afterwards.callback(callers.unblock, cluster.manage, newer)


def _another(stage: Stage) -> Caller:
    issued = stage.cluster.manage(
        "issue_credentials", callers.TAXPAYERS[0], "--name", "older", "--logins-per-minute", "0"
    )
    erp = Erp(issued["client_id"], issued["client_secret"])
    return replace(stage.cluster.population.blocked, name="older", kind=Kind.CHANGING, erp=erp)


def _expect(condition: bool, claim: str) -> None:
    if not condition:
        raise AssertionError(f"not so: {claim}")


SCENARIOS = (
    Scenario(
        "restore",
        "a dump is restored in one transaction, beside nodes with newer and with older facts",
        _restore,
        Promise(recovers_within=2, answers_within=2, never_received=UNDER_WAY),
    ),
)
