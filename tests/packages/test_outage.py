"""While the identity service is away, an API goes on by what it knows."""

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from einvoicing_tokens import TokenVerifier
from einvoicing_tokens.look_ahead import LookAhead, _run
from einvoicing_tokens.published import Status
from einvoicing_tokens.verifier import REFUSE_SECONDS
from tests.packages.issuer import AT, LIST, Issuer, is_accepted
from tests.packages.test_keys import assert_unavailable
from tests.servers.processes import slowness

INDEX, ENDED_INDEX = 777_777, 4_711
TTL = 5
HORIZON = 1800


@pytest.fixture
def lists(issuer: Issuer) -> Issuer:
    """With lists that can be used for 30 minutes; one token has ended."""
    issuer.end(ENDED_INDEX)
    publish(issuer, 0)
    return issuer


def publish(issuer: Issuer, seconds: int) -> None:
    at = int(AT.timestamp()) + seconds
    issuer.answers[LIST] = issuer.status_list(iat=at, exp=at + HORIZON)


def both(verifier: TokenVerifier, issuer: Issuer) -> tuple[bool, bool]:
    """Whether a token is accepted that is good, and one that was ended before."""
    good, ended = issuer.token(index=INDEX), issuer.token(index=ENDED_INDEX)
    return is_accepted(verifier, good), is_accepted(verifier, ended)


def test_good_tokens_pass_and_ended_ones_do_not_until_the_list_expires(lists: Issuer) -> None:
    verifier = lists.verifier()
    assert both(verifier, lists) == (True, False)
    lists.is_away = True
    for seconds in (TTL, 60, 600, HORIZON - 1):
        lists.clock.seconds = seconds
        assert both(verifier, lists) == (True, False), seconds
    lists.clock.seconds = HORIZON + 11
    assert_unavailable(verifier, lists.token(index=INDEX))


def test_an_api_can_refuse_instead(lists: Issuer) -> None:
    verifier = lists.verifier(on_outage="refuse")
    assert both(verifier, lists) == (True, False)
    lists.is_away, lists.clock.seconds = True, REFUSE_SECONDS - 0.1
    assert both(verifier, lists) == (True, False)
    lists.clock.seconds = REFUSE_SECONDS
    assert_unavailable(verifier, lists.token(index=INDEX))


def test_a_list_that_nobody_renews_grows_old_however_often_it_is_fetched(lists: Issuer) -> None:
    """All nodes have lost their database, and publish their last list."""
    verifier, strict = lists.verifier(), lists.verifier(on_outage="refuse")
    for seconds in range(0, 30, 3):
        lists.clock.seconds = seconds
        assert both(verifier, lists) == (True, False)
        assert verifier.status().age_seconds == seconds
        if seconds < REFUSE_SECONDS:
            assert both(strict, lists) == (True, False)
    assert_unavailable(strict, lists.token(index=INDEX))


def test_an_older_list_is_never_used_and_the_next_question_goes_to_another_node(
    lists: Issuer,
) -> None:
    publish(lists, 100)
    lists.clock.seconds = 100
    verifier = lists.verifier()
    assert both(verifier, lists) == (True, False)
    lists.ended = bytearray(len(lists.ended))
    publish(lists, 99)  # a node that has lost its database, and knows of no end
    lists.clock.seconds += TTL
    (pool,) = lists.pools
    assert len(pool.pools) == 1
    assert both(verifier, lists) == (True, False)
    assert len(pool.pools) == 0
    assert verifier.status().error
    publish(lists, 106)
    lists.clock.seconds += 1
    assert both(verifier, lists) == (True, True), "the newer one counts, whatever it says"
    assert verifier.status().error == ""


@pytest.mark.parametrize("off", [-60, 60], ids=["behind", "ahead"])
def test_a_clock_that_is_a_minute_off_refuses_nothing(lists: Issuer, off: int) -> None:
    verifier, token = lists.verifier(), lists.token(index=INDEX)
    lists.clock.seconds = off
    assert is_accepted(verifier, token)
    lists.is_away = True
    lists.clock.seconds = off + 20 * 60
    assert is_accepted(verifier, token)


def test_programs_are_told_every_5_seconds_and_the_log_once_a_minute(
    lists: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Status] = []
    verifier = lists.verifier()
    look_ahead = LookAhead(verifier._published, told.append)
    assert both(verifier, lists) == (True, False)
    assert not caplog.messages
    lists.is_away, lists.clock.seconds = True, TTL
    for now in (0, 4, 5, 59, 60, 61):
        look_ahead.turn(now)
    assert len(told) == 3
    assert told[0].error
    assert len([line for line in caplog.messages if "Facts are" in line]) == 2
    lists.is_away, lists.clock.seconds = False, 60
    look_ahead.turn(62)
    assert caplog.messages[-1].endswith(": available again")


def restarted(issuer: Issuer, folder: Path, seconds: float) -> TokenVerifier:
    """A new process while the service is away; files are as old as the clock says."""
    issuer.is_away, issuer.clock.seconds = True, seconds
    return issuer.verifier(folder=folder)


@pytest.fixture
def folder(lists: Issuer, tmp_path: Path) -> Path:
    """What an API has stored, at the first moment of the clock."""
    folder = tmp_path / "facts"
    verifier = lists.verifier(folder=folder)
    assert both(verifier, lists) == (True, False)
    for file in folder.iterdir():
        os.utime(file, (AT.timestamp(), AT.timestamp()))
    return folder


def test_an_api_that_restarts_during_an_outage_goes_on(lists: Issuer, folder: Path) -> None:
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 3, "metadata, keys and a list"
    verifier = restarted(lists, folder, 600)
    assert both(verifier, lists) == (True, False)
    assert verifier.status().age_seconds == 600
    lists.clock.seconds = HORIZON + 11
    assert_unavailable(verifier, lists.token(index=INDEX))


DAMAGED: dict[str, Any] = {
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "another's": lambda file: file.write_bytes(b'{"issuer": "https://other.example.org"}'),
    "bytes": lambda file: file.write_bytes(b"\xff\x00" * 99),
    "writable": lambda file: file.chmod(0o622),
    "of tomorrow": lambda file: os.utime(file, (AT.timestamp() + 86_400,) * 2),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_file_that_cannot_be_trusted_is_not_used(
    lists: Issuer, folder: Path, damage: str
) -> None:
    for file in folder.iterdir():
        DAMAGED[damage](file)
    assert_unavailable(restarted(lists, folder, 60), lists.token(index=INDEX))
    lists.is_away, lists.clock.seconds = False, 70
    assert both(lists.verifier(folder=folder), lists) == (True, False)


def test_a_folder_that_cannot_be_written_costs_no_request(lists: Issuer, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert both(lists.verifier(folder=tmp_path / "file" / "facts"), lists) == (True, False)


def turn(verifier: TokenVerifier, issuer: Issuer) -> None:
    assert verifier._look_ahead is not None
    verifier._look_ahead.turn(issuer.clock.monotonic())


@pytest.fixture
def ahead(lists: Issuer, monkeypatch: pytest.MonkeyPatch) -> TokenVerifier:
    """One whose thread takes a turn only when a test says so."""
    monkeypatch.setattr("einvoicing_tokens.look_ahead.LookAhead.ensure", lambda self: None)
    verifier = lists.verifier(look_ahead=True)
    verifier.verify(lists.token(index=INDEX))
    return verifier


def test_no_request_waits_while_there_are_facts(lists: Issuer, ahead: TokenVerifier) -> None:
    turn(ahead, lists)
    assert lists.requests[LIST] == 1
    for seconds, fetched in ((TTL - 1.1, 1), (TTL - 1, 2), (TTL, 2)):
        lists.clock.seconds = seconds
        turn(ahead, lists)
        assert lists.requests[LIST] == fetched, seconds
    lists.is_away = True
    for lists.clock.seconds in range(6, 600, 2):
        turn(ahead, lists)
    lists.may_answer.clear()  # it hangs, and so would a request that fetched
    began = time.monotonic()
    assert both(ahead, lists) == (True, False)
    assert time.monotonic() - began < slowness()
    lists.may_answer.set()


def test_the_thread_begins_with_a_token_anew_after_a_fork_and_ends_with_its_verifier(
    lists: Issuer,
) -> None:
    def threads() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "einvoicing_tokens"]

    verifier = lists.verifier(look_ahead=True)
    assert threads() == []
    verifier.verify(lists.token(index=INDEX))
    (thread,) = threads()
    assert thread.daemon
    child = os.fork()
    if child == 0:
        verifier.verify(lists.token(index=INDEX))
        os._exit(0 if len(threads()) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del verifier
    thread.join(30)
    assert not thread.is_alive()


def test_after_a_turn_that_failed_comes_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def turn(now: float) -> None:
        raise ArithmeticError

    monkeypatch.setattr("einvoicing_tokens.look_ahead.TURN_SECONDS", 0)
    turns = [SimpleNamespace(turn=turn), SimpleNamespace(turn=turn), None]
    _run(lambda: turns.pop(0))  # type: ignore[arg-type]
    assert caplog.text.count("published facts could not be looked after") == 2
