"""The benchmark measures what it says: right answers from right clients. No timing is asserted."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import psycopg
import pytest

from bench import comparison, history, load, page, profiling, sizing
from bench.chart import Bar, draw
from bench.clients import Population, Role, client_id, client_secret, tin
from bench.hops import HOPS
from bench.load import Outcome, WrongAnswer
from bench.measure import Case, Figures, measure, rows
from bench.report import Table, table_of
from bench.scenarios import Scenario, taxpayer_login
from bench.servers import Target
from bench.stage import Stage
from bench.stage import stage as open_stage
from taxpayers.credentials import Kind, fault_of
from taxpayers.identifiers import Notation, TaxpayerId
from tests.support import servers

SMALL = Population(40)


@pytest.mark.parametrize("role", Role)
def test_every_client_has_well_formed_credentials_and_a_tin(role: Role) -> None:
    for number in (0, 1, 999_999):
        assert fault_of(client_id(role, number), Kind.CLIENT_ID, "test") is None
        assert fault_of(client_secret(role, number), Kind.CLIENT_SECRET, "test") is None
        parsed = Notation("[A-Z0-9]{5,20}", "[A-Z0-9-]{5,20}").parse(tin(role, number))
        assert parsed == TaxpayerId(tin(role, number))


def test_no_two_clients_share_a_key_or_an_id() -> None:
    everybody = [(role, number) for role in Role for number in range(SMALL.count(role))]
    keys = {SMALL.first_id(role) + number for role, number in everybody}
    assert keys == set(range(1, len(everybody) + 1))
    assert len({client_id(*client) for client in everybody}) == len(everybody)


def test_the_ratio_is_to_the_unit_of_the_same_round_and_load() -> None:
    def figures(milliseconds: float) -> Figures:
        return Figures(milliseconds, 0.0, 1.0, 1.0, 1.0, 1.0, answers=1)

    target = Target("none", 0, 0, lambda: None)
    scenario = Scenario("none", lambda _: b"")
    cases = [
        Case("unit", target, scenario, 16),
        Case("unit", target, scenario, 64),
        Case("ours", target, scenario, 16),
        Case("ours", target, scenario, 64),
        Case("unit", target, scenario, 16),
    ]
    calm = dict(enumerate(map(figures, (0.5, 2.0, 4.0, 6.0, 1.5))))
    busy = dict(enumerate(map(figures, (1.0, 4.0, 8.0, 12.0, 3.0))))
    table = rows(cases, [calm, busy])
    assert [(row.case, row.ratio) for row in table] == [
        *(("unit", 1.0), ("unit", 1.0), ("ours", 4.0), ("ours", 3.0)),
    ]


def test_an_answer_that_is_not_a_token_stops_the_measurement() -> None:
    with pytest.raises(WrongAnswer, match=r"HTTP/1\.1 500"):
        Outcome(wrong=[b"HTTP/1.1 500"], wrong_count=1, latencies=[0.1]).raise_if_wrong("case")
    with pytest.raises(WrongAnswer, match="0 wrong"):
        Outcome().raise_if_wrong("case")


def test_cores_are_those_of_the_peak_at_seventy_percent() -> None:
    login = Figures(0.7, 0.35, 1.0, 1.0, 1.0, 1.0, answers=1)
    million = sizing.table(login).lines[1]
    assert million == ("1,000,000", "278", "833", "1", "1", "24.0")
    assert sizing.table(login).lines[-1][3:5] == ("42", "21")


def test_percentiles_are_in_milliseconds() -> None:
    latencies = [number / 1000 for number in range(100, 0, -1)]
    assert load.percentile(latencies, 0.5) == pytest.approx(51)
    assert load.percentile(latencies, 0.99) == pytest.approx(100)


def test_a_table_goes_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- one -->\nold\n<!-- /one -->\nafter\n", encoding="utf-8")
    page.write("one", Table(("who", "ms"), [("me", "1")]), about="Quickly.", page=file)
    written = file.read_text(encoding="utf-8")
    assert "| who | ms |\n| --- | --: |\n| me | 1 |\n\nQuickly. Measured on " in written
    assert written.startswith("before\n")
    assert written.endswith("<!-- /one -->\nafter\n")
    assert "old" not in written
    with pytest.raises(LookupError, match="two"):
        page.write("two", Table((), []), about="", page=file)


def test_the_documentation_has_a_place_for_every_table() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    for name in (
        *("comparison", "sizing", "growth by users", "growth by logins"),
        *("latency", "memory", "start", "profile"),
    ):
        assert f"<!-- {name} -->\n" in text
        assert f"<!-- /{name} -->" in text


def test_a_chart_is_well_formed_and_names_every_bar(tmp_path: Path) -> None:
    file = tmp_path / "chart.svg"
    draw(file, "A < B", ("server", "database"), [Bar("one & all", (1.0, 2.0)), Bar("two", (1.5,))])
    texts = ElementTree.parse(file).getroot().itertext()  # noqa: S314 - our own
    assert {"A < B", "one & all", "3.00", "two", "1.50"} <= {text.strip() for text in texts}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A stage in a folder of its own."""
    folder = servers.new_folder("bench", servers.postgres_user())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_DIR", str(folder))
        try:
            with open_stage({"fsync": "off"}) as running:
                yield running
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def test_every_kind_of_answer_is_right_and_stands_in_the_table(stage: Stage) -> None:
    chosen = ["login as intermediary", "refused", "SQLite"]
    compared = comparison.compare(stage, SMALL, count=1, seconds=0.2, only=chosen)
    assert {row.case for row in compared} == {
        comparison.UNIT,
        "login as intermediary",
        *("refused: wrong secret", "refused: blocked", "refused: hammering past its limit"),
        "login as taxpayer, SQLite",
    }
    assert all(row.figures.answers > 0 for row in compared)
    shown = table_of(compared, unit=comparison.UNIT).as_text().splitlines()
    assert len(shown) == 1 + len(compared)
    stage.clear()


def test_logins_of_the_past_are_recorded_where_the_next_one_goes(stage: Stage) -> None:
    url = stage.databases.copy(stage.databases.registry(SMALL), "past")
    assert history.add_events(url, 300, SMALL.taxpayers) > 100
    with psycopg.connect(url) as connection:
        (found,) = connection.execute(
            "SELECT count(*) FROM login_events JOIN system_users USING (client_id)"
            " WHERE subject <> '' AND reason = ''"
        ).fetchone() or (0,)
        assert found == 300
    target = stage.identity_on(url, "past")
    figures = measure(Case("past", target, taxpayer_login(SMALL)), seconds=0.2, seed=1)
    assert figures.answers > 0
    stage.clear()


def test_a_profile_names_every_hop(stage: Stage, tmp_path: Path) -> None:
    taken = profiling.by_hop(stage, SMALL, tmp_path, "now", seconds=1.0)
    assert profiling.earlier(tmp_path, ["now"]) == [taken]
    assert all(taken.hops[name] > 0 for name in HOPS)
    shown = profiling.table([taken, taken])
    assert [line[0] for line in shown.lines[: len(HOPS)]] == list(HOPS)
    stage.clear()
