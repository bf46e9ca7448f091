"""Log lines as JSON or, at a terminal, as text; no secret in any of them (contract 5)."""

import logging
import os
import time
from datetime import UTC, datetime
from itertools import islice
from traceback import walk_tb
from typing import Any

import msgspec

from taxpayers.redaction import Shown, hide_secrets

# Of a record we write neither thread, process nor caller, so they need not be found out: see
# "Optimization" in the logging HOWTO of Python.
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None

_encoder = msgspec.json.Encoder(enc_hook=str)  # a tenth of what json.dumps takes for each line
_FIRST_EXTRA = len(vars(logging.makeLogRecord({})))
_OF_OTHER_FORMATTERS = {"message", "asctime"}
# Written by us and never by a client. A key id looks like a secret.
_OWN_VALUES = frozenset({"kid", "reference", "outcome", "source_address", "chain_hash"})
_HARMLESS = (bool, int, float, type(None))
# Django logs a traceback of what any client can cause; its message says all.
_CAUSED_BY_CLIENTS = "django.security."
_MOST_FAULTS = 100  # of which a formatter remembers the traceback


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, all of `extra`, and the traceback if there is one.

    The traceback of one fault at most once a second: in an outage every login has the same. In the
    journal each line has its priority, as sd-daemon(3) says.
    """

    def __init__(self) -> None:
        super().__init__()
        # When the traceback of each fault was written, and how many were left out since.
        self._written: dict[object, tuple[float, int]] = {}
        self._is_in_journal = _is_journal(2)

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        if "traceback" in fields:
            fields |= self._at_most_once_a_second(record, fields["traceback"])
        line = _encoder.encode(fields).decode()
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{line}" if self._is_in_journal else line

    def _at_most_once_a_second(self, record: logging.LogRecord, text: str) -> dict[str, Any]:
        fault, now = _fault(record), time.monotonic()
        written_at, left_out = self._written.get(fault, (-1.0, 0))
        if now - written_at < 1:
            self._written[fault] = written_at, left_out + 1
            return {"traceback": "as written less than a second before"}
        if len(self._written) >= _MOST_FAULTS:
            self._written.clear()
        self._written[fault] = now, 0
        return {"traceback": text} | ({"tracebacks_left_out": left_out} if left_out else {})


_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.DEBUG: 7}


def _is_journal(file: int) -> bool:
    """Whether this file is the journal: see JOURNAL_STREAM in systemd.exec(5)."""
    try:
        status = os.fstat(file)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _fault(record: logging.LogRecord) -> object:
    """The same for each error of one kind at one place."""
    assert isinstance(record.exc_info, tuple)  # noqa: S101 - it has a traceback
    kind, _error, place = record.exc_info
    innermost = [(frame.f_code, line) for frame, line in walk_tb(place)][-1:]
    return record.name, record.msg, kind, *innermost


class TextFormatter(logging.Formatter):
    """The same for people at a terminal: `12:30:59 INFO tokens.login: login  outcome=issued`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        words = [f"{moment:%H:%M:%S} {record.levelname} {record.name}: {fields['message']}"]
        words += sorted(f"{name}={fields[name]}" for name in fields.keys() - _NOT_EXTRA)
        blocks = [fields[name] for name in _BLOCKS if name in fields]
        return "\n".join([_printable(" ".join(words)), *blocks])


_BLOCKS = ("traceback", "stack")  # several lines each
_NOT_EXTRA = {"time", "level", "logger", "message", *_BLOCKS}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": hide_secrets(record.getMessage()),
    }
    for name, value in islice(vars(record).items(), _FIRST_EXTRA, None):
        if name not in _OF_OTHER_FORMATTERS:
            is_harmless = name in _OWN_VALUES or isinstance(value, Shown)
            fields[name] = value if is_harmless else _without_secrets(value)
    if record.exc_info and not record.name.startswith(_CAUSED_BY_CLIENTS):
        fields["traceback"] = hide_secrets(logging.Formatter().formatException(record.exc_info))
    if record.stack_info:
        fields["stack"] = hide_secrets(record.stack_info)
    return fields


def _printable(text: str) -> str:
    """Without line breaks and escape sequences, by which a client could write whole lines."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _without_secrets(value: Any) -> Any:
    """The value itself, or text without the secrets that are somewhere in it."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, _HARMLESS):
        return value
    encoded = _encoder.encode(value).decode()
    shown = hide_secrets(encoded)
    return value if shown == encoded else shown
