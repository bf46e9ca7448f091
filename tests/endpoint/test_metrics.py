"""What Prometheus sees: every login by its outcome, over all processes (contract 6)."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from identity.metrics_files import share_counters
from tests.conftest import StartService
from tests.servers.processes import children_of, until
from tests.support.answers import headers_of
from tests.support.erp import PATH, Erp, new_erp, post
from tests.support.outages import database_out_of_reach
from tokens.refusals.table import REFUSALS

pytestmark = pytest.mark.django_db


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped() -> dict[str, float]:
    return samples(Client().get("/metrics").content.decode())


def added(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    counts = {k: v - before.get(k, 0) for k, v in after.items() if k.startswith("logins_total")}
    return {name.split()[1]: n for name, n in counts.items() if n}


def test_metrics_are_plain_text_that_needs_no_sign_in() -> None:
    response = Client().get("/metrics", headers={"accept": "text/html"})
    assert response.status_code == 200
    assert headers_of(response) == {  # type: ignore[arg-type]
        "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
        "Cache-Control": "no-store",
    }


def test_every_outcome_is_there_before_it_happens() -> None:
    outcomes = {name.split()[1] for name in scraped() if name.startswith("logins_total")}
    assert outcomes == {"issued", *REFUSALS}


def test_each_login_is_counted_by_its_outcome_and_timed(erp: Erp, blocked: Erp) -> None:
    before = scraped()
    erp.login()
    erp.login()
    blocked.login()
    erp.login(client_secret=new_erp().client_secret)
    post(b"a=b")
    after = scraped()
    assert added(before, after) == {
        "issued": 2,
        "system_user_blocked": 1,
        "invalid_credentials": 1,
        "missing_parameter": 1,
    }
    assert after["login_seconds_count"] - before["login_seconds_count"] == 5
    assert after["login_seconds_sum"] > before["login_seconds_sum"]


def test_metrics_are_served_while_the_database_is_out_of_reach() -> None:
    with database_out_of_reach():
        metrics = scraped()
    assert "logins_total issued" in metrics
    assert "signing_key_age_seconds" not in metrics


def test_all_processes_of_a_service_count_together(service: StartService) -> None:
    node = service(WEB_PROCESSES="2")

    def refused(_: int) -> int:
        return httpx.post(f"{node.url}{PATH}", data={"n": "1"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(refused, range(60))) == {400}
    folder = Path(node.environment["VAR_DIR"]) / f"metrics-{node.environment['PORT']}"
    for number, content in enumerate((b"", b"\xff" * 64, b"\x40" + bytes(7) + b"\x10" + b"x" * 64)):
        (folder / f"counter_{number}.db").write_bytes(content)  # cut off by a crash
    until(lambda: samples(httpx.get(f"{node.url}/metrics").text)["node_ready"])
    scrapes = [samples(httpx.get(f"{node.url}/metrics").text) for _ in range(8)]
    assert {scrape["logins_total missing_parameter"] for scrape in scrapes} == {60}
    assert {scrape["login_seconds_count"] for scrape in scrapes} == {60}
    assert {scrape["login_seconds_bucket +Inf"] for scrape in scrapes} == {60}
    assert len(list(folder.glob("counter_*.db"))) >= 2 + 3
    assert scrapes[0][f"identity_build_info {settings.COMMIT} {settings.VERSION}"] == 1
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds"):
        of_each = {int(key.split()[1]) for key in scrapes[0] if key.startswith(f"process_{name} ")}
        assert of_each == {node.pid, *children_of(node.pid)}


def test_counters_of_ended_processes_are_removed_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")  # restored at the end
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"counter_{ended.pid}.db", f"histogram_{ended.pid}.db"):
        (tmp_path / name).touch()
    staying = {f"counter_{os.getpid()}.db", "counter_1.db", "another.txt"}
    for name in staying:
        (tmp_path / name).touch()
    share_counters(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == staying
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(tmp_path)
