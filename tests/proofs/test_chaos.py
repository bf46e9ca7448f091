"""The drill with its real processes, and that it finds what is lost on purpose."""

from collections.abc import Iterator

import pytest

from proofs.chaos.cluster import Cluster, running_cluster
from proofs.chaos.drill import run
from proofs.chaos.scenarios import ALL
from proofs.chaos.scenarios.scenario import Scenario, Stage

pytestmark = pytest.mark.processes
FIRST = ("kill-worker", "crash-database", "hang-database")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as started:
        yield started


def assert_no_promise_is_broken(scenario: Scenario, cluster: Cluster) -> None:
    result = run(scenario, cluster)
    assert (result.broken, result.not_tested) == ([], ""), scenario.name
    assert result.seen is not None
    assert len(result.seen.answers) > 100


@pytest.mark.parametrize("name", FIRST)
def test_a_fault_of_a_node_or_of_the_database_breaks_no_promise(
    cluster: Cluster, name: str
) -> None:
    assert_no_promise_is_broken(next(one for one in ALL if one.name == name), cluster)


def test_no_other_fault_breaks_a_promise() -> None:
    """In their order: the last ones replace the primary."""
    with running_cluster() as cluster:
        for scenario in ALL:
            if scenario.name not in FIRST:
                assert_no_promise_is_broken(scenario, cluster)


def test_a_lost_record_and_a_forbidden_token_are_found(cluster: Cluster) -> None:
    def lose_records(stage: Stage) -> None:
        stage.begins()
        caller = stage.cluster.population.callers[0]
        with stage.cluster.connect() as connection:
            connection.execute(
                "DELETE FROM login_events WHERE client_id = %s", [caller.erp.client_id]
            )
        stage.forbid(stage.cluster.population.callers[1])
        stage.wait(1.0)
        stage.ends()

    broken = run(Scenario("loss", "", lose_records), cluster).broken
    assert "tokens without a login event" in broken[0]
    assert "forbidden tokens of ERP 2" in broken[1]
