"""The alerts and the dashboard: right for their programs, and about metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.operations.machine import DOCUMENT, blocks_of
from tests.servers.processes import CHECKOUT, program_of, ran
from tests.servers.service import Service
from tokens.metrics import ISSUED
from tokens.refusals.table import REFUSALS

PROMETHEUS = CHECKOUT / "deploy" / "prometheus"
TRIALS = sorted(PROMETHEUS.glob("*.test.yml"))
DASHBOARD = json.loads((CHECKOUT / "deploy/grafana/token-service.json").read_text("utf-8"))
ALERTS = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
_METRIC = re.compile(r"\b([a-z][a-z_]*_(?:total|bucket|seconds)|up)\b")
_OUTCOMES = re.compile(r'outcome(?:!=|=~?)"([^"]*)"')


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (alert["expr"] for alert in ALERTS)


@pytest.fixture
def promtool() -> str:
    return program_of("prometheus", "promtool")


@pytest.mark.processes
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "--lint-fatal", "alerts.yml"),
        ("check", "config", "--lint-fatal", "--syntax-only", "prometheus.yml"),
        ("test", "rules", *(file.name for file in TRIALS)),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_prometheus_finds_no_fault(promtool: str, arguments: tuple[str, ...]) -> None:
    assert "SUCCESS" in ran([promtool, *arguments], cwd=PROMETHEUS)


@pytest.mark.processes
def test_every_query_of_the_dashboard_can_be_asked(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(expressions())
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    ran([promtool, "check", "rules", file])


def test_each_alert_is_tried_and_on_a_quiet_day_as_well() -> None:
    tests = [test for file in TRIALS for test in yaml.safe_load(file.read_text("utf-8"))["tests"]]
    fired: set[str] = set()
    quiet: set[str] = set()
    for case in (case for test in tests for case in test["alert_rule_test"]):
        (fired if case.get("exp_alerts") else quiet).add(case["alertname"])
    assert fired == quiet == {alert["alert"] for alert in ALERTS}


def test_each_alert_leads_to_its_runbook() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    watch = text.partition("\n## Watch\n")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.+)$", watch, re.MULTILINE) == [alert["alert"] for alert in ALERTS]
    for alert in ALERTS:
        path, _, anchor = alert["annotations"]["runbook_url"].partition("#")
        assert path.endswith("/docs/operations.md")
        assert anchor == alert["alert"].lower()


def test_the_jobs_of_prometheus_have_the_names_that_the_alerts_know() -> None:
    example = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    jobs = {job["job_name"] for job in example["scrape_configs"]}
    named = {name for query in expressions() for name in re.findall(r'\bjob="([^"]+)"', query)}
    assert named == {"identity", "identity-proxy"}
    assert named <= jobs
    assert example["alerting"]["alertmanagers"]
    (rules,) = example["rule_files"]
    assert any(f"/etc/prometheus/{rules}\n" in block for block in blocks_of("Watch"))


def test_the_dashboard_is_one_for_grafana() -> None:
    assert isinstance(DASHBOARD["schemaVersion"], int)
    assert DASHBOARD["title"]
    assert DASHBOARD["templating"]["list"]
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["type"] in ("stat", "timeseries")
        assert panel["fieldConfig"]["defaults"]["unit"] in ("short", "reqps", "percentunit", "s")
        for target in panel["targets"]:
            assert target["refId"]
            assert target["expr"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.gate
def test_every_metric_that_is_asked_for_exists(node: Service) -> None:
    for path in ("token", "introspect", "revocation"):  # a counter is there when it has counted
        httpx.post(f"{node.url}/connect/{path}", data={"client_id": "x"})
    families = text_string_to_metric_families(httpx.get(f"{node.url}/metrics").text)
    served = {sample.name for family in families for sample in family.samples}
    asked = {name for query in expressions() for name in _METRIC.findall(query)}
    assert len(asked) >= 6
    # `up` is of Prometheus itself, the others are of programs beside it.
    beside = ("node_systemd_", "backup_", "kube_", "probe_")
    assert {name for name in asked - {"up"} if not name.startswith(beside)} <= served
    assert "login_seconds_bucket" in asked


def test_every_outcome_that_is_asked_for_exists() -> None:
    asked = {name for query in expressions() for found in _OUTCOMES.findall(query)
             for name in found.split("|")}  # fmt: skip
    assert {"issued", "temporarily_unavailable", "server_error"} <= asked
    assert asked <= {ISSUED, *map(str, REFUSALS)}
