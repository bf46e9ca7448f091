"""The benchmark measures what it says: right answers for right clients. No timing is asserted."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.cases import comparison
from bench.clients import Population
from bench.load import WrongAnswer
from bench.measure import Case, measure_rounds
from bench.peers.bare_view import BARE_VIEW
from bench.peers.oidc_provider import STORED
from bench.peers.toolkit import FAST_HASHER, STOCK
from bench.servers import Server
from bench.session import Session
from tests.servers.postgres import Postgres


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


@pytest.mark.long
def test_every_kind_of_answer_is_right_and_has_its_row(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no node
    chosen = ["first", "intermediary", "_jwt", "refused", "SQLite", "oidc-provider"]
    chosen += ["introspection", "/me"]
    tables = comparison.run(session, users=40, rounds=1, seconds=0.2, only=chosen)
    assert [table.name for table in tables] == ["comparison", "targets"]
    table, targets = tables
    assert [line[:2] for line in table.lines] == [
        *(("bare Django view", "16"), ("bare Django view", "64")),
        *((name, "16") for name in ("first login of a client", "login as intermediary")),
        ("login with private_key_jwt (ES256)", "16"),
        *((f"refused: {what}", "16") for what in ("wrong secret", "blocked", "malformed")),
        *((name, "16") for name in ("refused: rate limit", "introspection", "GET /api/v1/me")),
        ("login as taxpayer, SQLite", "16"),
    ]
    assert all(float(line[6]) > 0 for line in table.lines), "answers per second"
    assert "oidc-provider, stored tokens was skipped: node or npm is missing." in table.note
    measured = [line[0] for line in targets.lines if line[3] != "-"]
    assert measured == [
        "first login of a client, of a bare Django view",
        *(f"{name}, of a bare Django view" for name in ("refused: rate limit", "introspection")),
        "GET /api/v1/me, of a bare Django view",
    ]


@pytest.mark.long
def test_a_round_in_which_a_peer_fails_is_measured_again_and_the_service_never_fails(
    session: Session,
) -> None:
    population = Population(40)
    server = BARE_VIEW.start(session, population)

    def wrong(times: int, *, is_peer: bool) -> Case:
        not_found = iter([b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"] * times)
        asked = replace(
            BARE_VIEW,
            request=lambda *of: next(not_found, b"") or BARE_VIEW.request(*of),
            is_peer=is_peer,
        )
        return Case("one", asked, server, population)

    assert len(measure_rounds([wrong(1, is_peer=True)], 4, 0.1).measured) == 4
    for case in (wrong(1, is_peer=False), wrong(10_000, is_peer=True)):
        with pytest.raises(WrongAnswer):
            measure_rounds([case], 4, 0.1)
    assert all(of.is_peer for of in (STOCK, FAST_HASHER, STORED))
