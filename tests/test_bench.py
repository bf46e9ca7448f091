"""The benchmark measures what it says: right answers for right clients. No timing is asserted."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from mmap import mmap
from pathlib import Path

import psycopg
import pytest

from bench import report
from bench.__main__ import COMMANDS, parser
from bench.cases import comparison, sizing
from bench.clients import Population, Role, client_id, client_secret, tin
from bench.figures import Figures, Rounds, percentile
from bench.load import Outcome, WrongAnswer
from bench.login_events import add_login_events
from bench.measure import Case, each_in_turn, measure, meet_clients
from bench.peers import service
from bench.processes import private_bytes
from bench.report import Table
from bench.servers import Server, free_port
from bench.session import Session
from bench.targets import Target
from bench.token_requests import BLOCKED, SIGNED_TOKEN, WRONG_SECRET
from bench.tokens import BadToken, verify
from taxpayers.credentials import Prefix, fault_of
from taxpayers.identifiers import Notation, TaxpayerId
from tests.servers.postgres import Postgres

SMALL = Population(40)


@pytest.mark.parametrize("number", [1, 40, 999_999])
def test_every_client_has_well_formed_credentials_and_a_tin(number: int) -> None:
    assert fault_of(client_id(number), Prefix.CLIENT_ID, "test") is None
    assert fault_of(client_secret(number), Prefix.CLIENT_SECRET, "test") is None
    parsed = Notation("[A-Z0-9]{5,20}", "[A-Z0-9-]{5,20}").parse(tin(number))
    assert parsed == TaxpayerId(tin(number))


def test_the_roles_share_no_client_and_leave_no_gap() -> None:
    ranges = [SMALL.numbers(role) for role in Role]
    assert ranges[0] == range(1, 41)
    assert all(first.stop == second.start for first, second in pairwise(ranges))
    assert all(SMALL.intermediary_of(number) in ranges[1] for number in ranges[0])
    assert len({client_id(number) for numbers in ranges for number in numbers}) == 40 + 4 * 64


def test_a_client_that_was_met_is_never_one_of_a_first_login() -> None:
    for count, of_met, of_unmet in ((40, 20, 20), (1_000_000, 100_000, 500_000)):
        population = Population(count)
        met, unmet = (set(of(Role.TAXPAYER)) for of in (population.met, population.unmet))
        assert not met & unmet
        assert met | unmet <= set(population.numbers(Role.TAXPAYER))
        assert (len(met), len(unmet)) == (of_met, of_unmet)
        assert max(met) - min(met) > count * 0.9, "from all over the registry"


def test_each_request_of_a_run_is_of_another_client() -> None:
    numbers = list(islice(each_in_turn(Population(1_000_000).met(Role.TAXPAYER)), 100_000))
    assert len(set(numbers)) == 100_000
    assert numbers != sorted(numbers)
    assert len(set(islice(each_in_turn(range(1, 3)), 5))) == 2, "then again from the first"


def test_a_ratio_is_to_the_same_round_and_to_as_many_connections() -> None:
    def figures(milliseconds: float) -> Figures:
        return Figures(milliseconds, 0.0, 1.0, 1.0, 1.0, 1.0)

    cases = [("bare", 16), ("bare", 64), ("service", 16), ("service", 64), ("bare", 16)]
    quiet = list(map(figures, (0.5, 2.0, 4.0, 6.0, 1.5)))
    busy = list(map(figures, (1.0, 4.0, 8.0, 12.0, 3.0)))
    rounds = Rounds([*cases, ("other", 32)], [[*quiet, figures(1.0)], [*busy, figures(2.0)]])
    assert [rounds.ratio(*case, "bare") for case in cases] == [1.0, 1.0, 4.0, 3.0, 1.0]
    assert rounds.ratio("other", 32, "bare") == 1.0, "to the first number of connections"
    assert rounds.ratio("service", 16, "none") is rounds.ratio("none", 16, "bare") is None
    assert rounds.medians("bare", 16).cpu_ms == 1.25


@pytest.mark.parametrize(
    ("target", "measured", "line"),
    [
        (Target("a", 2.6, 1.8), 1.8, ("a", "≤ 2.6 x", "≤ 1.8 x", "1.80 x", "goal")),
        (Target("a", 2.6, 1.8), 2.6, ("a", "≤ 2.6 x", "≤ 1.8 x", "2.60 x", "must")),
        (Target("a", 2.6, 1.8), 2.61, ("a", "≤ 2.6 x", "≤ 1.8 x", "2.61 x", "no")),
        (Target("a", 2.6, None), None, ("a", "≤ 2.6 x", "-", "-", "-")),
        (Target("a", None, 1, is_at_least=True), 0.9, ("a", "-", "≥ 1 x", "0.90 x", "no")),
        (Target("a", 5, None, "s", is_at_least=True), 6, ("a", "≥ 5 s", "-", "6.00 s", "must")),
    ],
)
def test_a_target_is_met_at_its_limit(
    target: Target, measured: float | None, line: tuple[str, ...]
) -> None:
    assert target.line(measured) == line


def test_a_mapped_store_is_not_counted_as_memory_of_the_process(tmp_path: Path) -> None:
    def growth(name: str) -> int:
        before = private_bytes(os.getpid())
        (tmp_path / name).write_bytes(bytes(size))
        with (tmp_path / name).open("r+b") as file, mmap(file.fileno(), size) as mapped:
            mapped[:] = b"x" * size
            return private_bytes(os.getpid()) - before

    size = 32 * 2**20
    assert growth("data.mdb") < size / 2 < growth("other")


def test_a_wrong_answer_stops_the_measurement_and_so_does_none_at_all() -> None:
    with pytest.raises(WrongAnswer, match=r"HTTP/1\.1 500"):
        Outcome(wrong=[b"HTTP/1.1 500"], latencies=[0.1]).raise_if_wrong("case")
    with pytest.raises(WrongAnswer, match="0 wrong"):
        Outcome().raise_if_wrong("case")


def test_cores_are_those_of_the_peak_at_seventy_percent() -> None:
    table = sizing.table(Figures(0.7, 0.35, 1.0, 1.0, 1.0, 1.0))
    assert table.lines[1] == ("1,000,000", "278", "833", "1", "1", "24.0")
    assert table.lines[-1][3:5] == ("42", "21")


def test_percentiles_are_in_milliseconds() -> None:
    latencies = [number / 1000 for number in range(100, 0, -1)]
    assert percentile(latencies, 0.5) == pytest.approx(51)
    assert percentile(latencies, 0.99) == pytest.approx(100)


def test_a_table_goes_to_its_place_and_nowhere_else(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- one -->\nold\n<!-- /one -->\nafter\n", encoding="utf-8")
    report.write(Table("one", ("who", "ms"), [("me", "1")], note="Quickly."), file)
    written = file.read_text(encoding="utf-8")
    assert "| who | ms |\n| --- | -: |\n| me  |  1 |\n\nQuickly. Measured on " in written
    assert written.startswith("before\n")
    assert written.endswith("<!-- /one -->\nafter\n")
    assert "old" not in written
    with pytest.raises(LookupError, match="two"):
        report.write(Table("two", ("who",), []), file)


def test_the_documentation_has_a_place_for_every_table() -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    for name in (
        *("comparison", "sizing", "growth by users", "growth by logins"),
        *("latency", "memory", "start", "traces", "staff pages", "targets", "growth targets"),
        *("latency targets", "memory targets", "start targets"),
    ):
        assert f"<!-- {name} -->\n" in text
        assert f"<!-- /{name} -->" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_options_with_defaults(command: str) -> None:
    options = vars(parser().parse_args([command, "--users", "2000"]))
    assert options.pop("command") == command
    assert options.pop("write") is False
    assert options.pop("users") == 2000
    assert options
    assert all(value for value in options.values())


@pytest.fixture(scope="module")
def session_of_all_tests(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session on the PostgreSQL of the tests; the registry is filled once."""
    folder = tmp_path_factory.mktemp("bench")
    return Session(folder, Server(postgres.port, postgres.process))


@pytest.fixture
def session(session_of_all_tests: Session) -> Iterator[Session]:
    """Without a server that an earlier test started."""
    yield session_of_all_tests
    session_of_all_tests.stop_servers()


def test_every_kind_of_answer_is_right_and_has_its_row(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no node
    chosen = ["first", "intermediary", "_jwt", "refused", "SQLite", "oidc-provider"]
    tables = comparison.run(session, users=40, rounds=1, seconds=0.2, only=chosen)
    assert [table.name for table in tables] == ["comparison", "targets"], "no login, no sizing"
    table, targets = tables
    assert [line[:2] for line in table.lines] == [
        *(("bare Django view", "16"), ("bare Django view", "64")),
        *((name, "16") for name in ("first login of a client", "login as intermediary")),
        ("login with private_key_jwt (ES256)", "16"),
        *((f"refused: {what}", "16") for what in ("wrong secret", "blocked", "malformed")),
        *((name, "16") for name in ("refused: rate limit", "login as taxpayer, SQLite")),
    ]
    assert all(float(line[6]) > 0 for line in table.lines), "answers per second"
    assert "oidc-provider, stored tokens was skipped: node or npm is missing." in table.note
    measured = [line[0] for line in targets.lines if line[3] != "-"]
    assert measured == [
        "first login of a client, of a bare Django view",
        "refused: rate limit, of a bare Django view",
    ]


def _login_events(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM login_events").fetchone()
    return int(found[0]) if found else 0


def test_logins_after_many_others_are_measured_and_every_answer_is_checked(
    session: Session,
) -> None:
    url = session.copy_of_registry(SMALL, "bench_events")
    start_of_month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    add_login_events(url, 300, SMALL.taxpayers, start_of_month, refused_percent=5)
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE reason <> ''), min(at) >= %s"
            " FROM login_events JOIN system_users USING (client_id) WHERE subject <> ''",
            [start_of_month],
        ).fetchone()
    assert found == (300, 15, True)
    server = service.start_on(session, "bench_events", url)
    case = Case("many logins", service.LOGIN, server, SMALL)
    assert measure(case, seconds=0.2).per_second > 0
    first = Case("first", service.FIRST_LOGIN, server, SMALL)
    recorded = _login_events(url)
    meet_clients([first, case, Case("with more connections", service.LOGIN, server, SMALL, 64)])
    assert _login_events(url) - recorded == len(SMALL.met(Role.TAXPAYER))
    elsewhere = Case("elsewhere", service.LOGIN, Server(free_port(), server.process), SMALL)
    with pytest.raises(ConnectionRefusedError):
        meet_clients([elsewhere, case])
    assert measure(first, seconds=1).per_second > 0
    with pytest.raises(WrongAnswer, match="every client has logged in before"):
        measure(first, seconds=1)
    for expected in (SIGNED_TOKEN, WRONG_SECRET, replace(BLOCKED, status=401)):
        wrong = replace(service.BLOCKED_USER, expected=expected)
        with pytest.raises(WrongAnswer, match="unauthorised_client"):
            measure(Case("blocked", wrong, server, SMALL), seconds=0.2)
    foreign = b'HTTP/1.1 200 OK\r\n\r\n{"access_token": "eyJhbGciOiJub25lIn0.e30."}'
    with pytest.raises(BadToken):
        verify([foreign], server.port)
