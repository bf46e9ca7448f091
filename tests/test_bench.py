"""The benchmark measures what it says: right answers for right clients. No timing is asserted."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.cases import comparison
from bench.load import WrongAnswer
from bench.peers import Candidate
from bench.peers.bare_view import BARE_VIEW
from bench.report import Table
from bench.servers import Server
from bench.session import Session
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def session_of_all_tests(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("bench"), Server(postgres.port, postgres.process))


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
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds_with(peer_fails: int, service_fails: int) -> list[Table]:
        monkeypatch.setattr(comparison, "PEERS", (failing(peer_fails, "peer"), BARE_VIEW))
        monkeypatch.setattr(comparison, "SERVICE", (failing(service_fails, "service"),))
        return comparison.run(session, users=40, rounds=4, seconds=0.1)

    def failing(times: int, name: str) -> Candidate:
        not_found = iter([b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"] * times)
        return replace(
            BARE_VIEW,
            name=name,
            connections=(16,),
            request=lambda *of: next(not_found, b"") or BARE_VIEW.request(*of),
        )

    table, _targets = rounds_with(1, 0)
    assert [line[0] for line in table.lines] == ["peer", *[BARE_VIEW.name] * 2, "service"]
    for fails in ((10_000, 0), (0, 1)):
        with pytest.raises(WrongAnswer):
            rounds_with(*fails)
