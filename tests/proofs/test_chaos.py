"""A short drill with its real processes, and a drill that finds what is lost on purpose."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from proofs.chaos.cluster import Cluster, running_cluster
from proofs.chaos.drill import run
from proofs.chaos.scenarios import ALL
from proofs.chaos.scenarios.scenario import Scenario, Stage

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def cluster(django_db_blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    with django_db_blocker.unblock(), running_cluster() as started:
        yield started


def test_a_killed_worker_breaks_no_promise(cluster: Cluster) -> None:
    result = run(next(one for one in ALL if one.name == "kill-worker"), cluster)
    assert result.broken == []
    assert result.seen is not None
    assert len(result.seen.answers) > 100


def test_a_lost_record_a_forbidden_token_and_a_failing_scenario_are_found(
    cluster: Cluster,
) -> None:
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
        raise AssertionError("it is not so")

    broken = run(Scenario("loss", "", lose_records), cluster).broken
    assert broken[0] == "the scenario itself failed: AssertionError('it is not so')"
    assert "tokens without a login event" in broken[1]
    assert any("forbidden tokens of ERP 2" in one for one in broken)
