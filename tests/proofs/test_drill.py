"""A part of the drill with its real processes, so that the drill itself cannot decay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from proofs.chaos import report
from proofs.chaos.cluster import Cluster, running_cluster
from proofs.chaos.drill import Result, run
from proofs.chaos.scenarios import ALL
from proofs.chaos.scenarios.scenario import Scenario, Stage

pytestmark = pytest.mark.processes
BY_NAME = {scenario.name: scenario for scenario in ALL}


@pytest.fixture(scope="module")
def cluster(django_db_blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    with django_db_blocker.unblock(), running_cluster() as started:
        yield started


@pytest.mark.parametrize("name", ["kill-worker", "locked-client", "partition"])
def test_a_scenario_keeps_its_promises(cluster: Cluster, name: str) -> None:
    result = run(BY_NAME[name], cluster)
    assert result.broken == []
    assert result.seen is not None
    assert len(result.seen.answers) > 100


def test_what_is_lost_is_found_with_real_processes(cluster: Cluster) -> None:
    def lose_records(stage: Stage) -> None:
        stage.begins()
        caller = stage.cluster.population.callers[0]
        with stage.cluster.connect() as connection:
            connection.execute(
                "DELETE FROM login_events WHERE client_id = %s", [caller.erp.client_id]
            )
        stage.forbid(stage.cluster.population.callers[1])
        stage.ends()

    broken = run(Scenario("loss", "", lose_records), cluster).broken
    assert len(broken) == 2
    assert "tokens without a login event" in broken[0]
    assert "forbidden tokens of ERP 2" in broken[1]


def test_a_scenario_that_fails_is_a_broken_promise(cluster: Cluster) -> None:
    def fail(stage: Stage) -> None:
        stage.begins()
        raise AssertionError("it is not so")

    broken = run(Scenario("failing", "", fail), cluster).broken
    assert broken[0] == "the scenario itself failed: AssertionError('it is not so')"


def test_the_report_replaces_what_an_earlier_drill_wrote(tmp_path: Path) -> None:
    document = tmp_path / "reliability.md"
    document.write_text(f"before\n{report.BEGIN}\n\nformer figures\n\n{report.END}\nafter\n")
    results = [
        Result(BY_NAME["full-disk"], not_tested="no disk"),
        Result(BY_NAME["failover"], broken=["late"]),
    ]
    report.write(report.written(results, 1), document)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "former figures" not in text
    assert "- full-disk: no disk" in text
    assert "- failover: late" in text


def test_every_scenario_has_its_own_name() -> None:
    assert len(BY_NAME) == len(ALL)
    assert all(len(scenario.name) <= 18 for scenario in ALL)
