"""The service as it runs in production, with a collector that answers, hangs or is away."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.conftest import StartService
from tests.live.cluster import Cluster, behind, login_at, new_client
from tests.servers.nginx import free_ports, start_balancer
from tests.servers.processes import CHECKOUT, STOP_SECONDS, free_port, stopping, until
from tests.servers.service import Service, clean_environment
from tests.traces.conftest import Collector

pytestmark = pytest.mark.processes
AT_ONCE = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_TRACES_SAMPLER_ARG": "1"}
IN_AN_HOUR = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_TRACES_SAMPLER_ARG": "1"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
LOADED = "import identity.asgi, json, sys; print(json.dumps(sorted(sys.modules)))"


def stop_in_order(node: Service) -> None:
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(STOP_SECONDS) == 0


@pytest.mark.gate
def test_every_process_sends_its_spans_and_the_last_ones_when_it_stops(
    service: StartService, collector: Collector
) -> None:
    node = service(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **IN_AN_HOUR)
    erp = new_client(node)
    answers = [login_at(node, erp) for _ in range(6)]
    assert {answer.status_code for answer in answers} == {200}
    assert collector.spans == []
    stop_in_order(node)
    until(lambda: len(collector.named("POST /connect/token")) == 6)
    correlated = {
        span.attributes["identity.correlation_id"]
        for span in collector.named("POST /connect/token")
    }
    assert correlated == {answer.headers["correlationId"] for answer in answers}


def test_a_collector_that_hangs_delays_no_login_and_no_stop(
    service: StartService, collector: Collector
) -> None:
    collector.holds.set()
    node = service(
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_EXPORTER_OTLP_TIMEOUT="600",
        OTEL_BSP_MAX_QUEUE_SIZE="20",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10",
        WEB_PROCESSES="1",
        **AT_ONCE,
    )
    erp = new_client(node, "--logins-per-minute", "0")
    assert login_at(node, erp).status_code == 200
    until(lambda: collector.held)
    # More spans than the queue has room for.
    assert {login_at(node, erp).status_code for _ in range(20)} == {200}
    assert (collector.held, collector.spans) == (1, [])
    stop_in_order(node)
    assert collector.spans == []


def test_a_collector_that_is_away_costs_no_login(service: StartService) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    node = service(OTEL_EXPORTER_OTLP_ENDPOINT=away, WEB_PROCESSES="1", **AT_ONCE)
    erp = new_client(node)
    assert {login_at(node, erp).status_code for _ in range(5)} == {200}


def test_through_our_proxy_nobody_outside_decides_which_login_gets_a_trace(
    service: StartService, collector: Collector
) -> None:
    ports = free_ports()  # nginx skips the second node, which is not there
    balancer = start_balancer(ports)
    with stopping(balancer):
        settings = behind(ports) | AT_ONCE | {"WEB_PROCESSES": "1"}
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "PORT": str(ports.nodes[0])}
        node = service(**(settings | given))
        erp = new_client(node)
        answer = Cluster(balancer, [node]).login(erp, traceparent=f"00-{TRACE}-b7ad6b7169203331-00")
        assert answer.status_code == 200
        until(lambda: collector.named("POST /connect/token"))
    assert TRACE not in {span.trace for span in collector.spans}


def modules_of(**given: str) -> set[str]:
    environment = clean_environment() | {"VAR_DIR": os.environ["VAR_DIR"]} | given
    command = [sys.executable, "-W", "error", "-c", LOADED]
    return set(json.loads(subprocess.check_output(command, cwd=CHECKOUT, env=environment)))


ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("given", "is_imported"),
    [
        *(({"SERVE": "login"}, False), ({"SERVE": "staff", **ENDPOINT}, False)),
        ({"SERVE": "login", **ENDPOINT}, True),
    ],
)
def test_it_is_imported_with_the_setting_where_logins_are_served(
    given: dict[str, str], is_imported: bool
) -> None:
    modules = modules_of(**given)
    assert "tokens.operations.asgi" in modules
    assert ("identity.traces.endpoint" in modules) == is_imported
    parts = ("identity.traces", "opentelemetry.sdk", "opentelemetry.trace", "google.protobuf")
    assert is_imported or not [name for name in modules if name.startswith(parts)]
