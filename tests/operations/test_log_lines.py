"""Log lines: JSON in production, readable on a terminal, and no secret in either."""

import json
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from identity.logs import JsonFormatter, TextFormatter
from tests.servers.processes import CHECKOUT
from tests.servers.service import clean_environment

LOG_ONE_LINE = "import logging; logging.getLogger('tokens.x').warning('hello')"


def record(**extra: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "tokens.login", "levelname": "INFO", "msg": "login"})
    made.__dict__.update(extra)
    return made


def test_a_line_of_text_has_what_the_json_has() -> None:
    line = TextFormatter().format(record(outcome="issued", client_id="x", milliseconds=2.5))
    assert line[8:] == " INFO tokens.login: login client_id=x milliseconds=2.5 outcome=issued"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_client_cannot_write_lines_of_its_own(formatter: logging.Formatter) -> None:
    line = formatter.format(record(user_agent="x\n12:00:00 ERROR\x1b[2J\u202e"))
    assert not {"\n", "\x1b"} & set(line)
    assert line.isprintable() or isinstance(formatter, JsonFormatter)  # which no person reads


def test_a_traceback_is_below_its_line() -> None:
    try:
        raise ValueError("oh")
    except ValueError:
        line = TextFormatter().format(record(exc_info=sys.exc_info()))
    first, second, *_, last = line.splitlines()
    assert first.endswith("tokens.login: login")
    assert second == "Traceback (most recent call last):"
    assert last == "ValueError: oh"


def failed(kind: type[Exception], *, elsewhere: bool = False) -> logging.LogRecord:
    try:
        if elsewhere:
            raise kind("elsewhere")
        raise kind("here")
    except kind:
        return record(exc_info=sys.exc_info())


def test_the_traceback_of_a_fault_is_written_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter, now = JsonFormatter(), [1000.0]
    monkeypatch.setattr("identity.logs.time.monotonic", lambda: now[0])

    def written(*records: logging.LogRecord) -> list[tuple[bool, int]]:
        lines = [json.loads(formatter.format(one)) for one in records]
        begin = "Traceback (most recent call last)"
        return [
            (one["traceback"].startswith(begin), one.get("tracebacks_left_out", 0)) for one in lines
        ]

    same = [failed(ValueError) for _ in range(3)]
    assert written(*same) == [(True, 0), (False, 0), (False, 0)]
    others = failed(ValueError, elsewhere=True), failed(KeyError)
    assert written(*others) == [(True, 0)] * 2
    now[0] += 1.1
    assert written(*same) == [(True, 2), (False, 0), (False, 0)]


def logged(stderr: int, **given: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", LOG_ONE_LINE],
        cwd=CHECKOUT,
        env={**clean_environment(), "VAR_DIR": os.environ["VAR_DIR"], **given},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


@pytest.mark.gate
@pytest.mark.processes
@pytest.mark.parametrize("is_journal", [True, False])
def test_production_logs_json_and_in_the_journal_each_line_has_its_priority(
    tmp_path: Path, is_journal: bool
) -> None:
    with (tmp_path / "journal").open("w+b") as file:
        status = os.fstat(file.fileno())
        inode = status.st_ino if is_journal else status.st_ino + 1
        with logged(file.fileno(), JOURNAL_STREAM=f"{status.st_dev}:{inode}") as process:
            process.wait()
        file.seek(0)
        line = file.read().decode()
    assert line.startswith("<4>{" if is_journal else "{")  # a warning
    assert json.loads(line.removeprefix("<4>"))["message"] == "hello"


@pytest.mark.processes
@pytest.mark.parametrize(("log_format", "is_json"), [("", False), ("json", True)])
def test_a_terminal_shows_text_unless_json_is_asked_for(log_format: str, is_json: bool) -> None:
    ours, terminal = pty.openpty()
    with logged(terminal, LOG_FORMAT=log_format) as process:
        process.wait()
    os.close(terminal)
    line = os.read(ours, 4096).decode()
    os.close(ours)
    assert line.startswith("{") is is_json
    assert "hello" in line
