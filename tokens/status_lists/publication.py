"""The status lists as this process knows them: read from the database twice a second (contract 2).

A thread of the server reads; a request for a list is answered from memory, on the event loop.
While the database cannot be read, the last lists are published with their old dates, so that
protected APIs go on checking tokens until these lists expire; only what operators block offline is
added to them.
"""

import logging
import os
import threading
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError, OperationalError, connection

from taxpayers.models import EndedStatusIndex
from taxpayers.repeated import repeat
from taxpayers.shut_down import answered_within
from taxpayers.sql import fetch_through_django
from tokens.access_tokens.claims import LIST_LENGTH
from tokens.keys.signer import current_key_ring, sign
from tokens.status_lists.ending import end_indexes
from tokens.status_lists.format import SET_FOR, TYP, compress, list_claims
from tokens.status_lists.offline_blocks import offline_blocks
from tokens.status_lists.owners import Owners
from tokens.uptime import uptime

logger = logging.getLogger("tokens.status_lists")

READ_EVERY_SECONDS = 0.5
ANSWER_SECONDS = 1.5
_READ_ALL_AFTER_SECONDS = 600.0  # after a restore the same numbers may be other indexes
_STATE = """
SELECT {clock}, (SELECT max(number) FROM ended_status_indexes),
    (SELECT max("index") FROM status_indexes),
    EXISTS (SELECT 1 FROM status_changes)
        OR EXISTS (SELECT 1 FROM status_indexes WHERE check_at < {now})"""


class UnknownList(LookupError):
    """There is no list of this number."""


class _State(NamedTuple):
    at: datetime
    last_number: int
    highest_index: int
    is_due: bool


@dataclass(frozen=True, slots=True)
class _Published:
    """All lists as of the moment `at` of the database's clock; signed when they are asked for."""

    at: datetime
    numbers: range
    compressed: dict[int, str]  # of the lists in which any bit is set
    signed: dict[int, str] = field(default_factory=dict)


class StatusLists:
    """All lists. No request waits for a lock: what was read is replaced as a whole."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self.is_kept_fresh = False
        self._read_at = self._read_all_at = float("-inf")  # by `uptime`
        self._last_number = 0
        self._bits: dict[int, bytearray] = {}  # of the lists in which any bit is set
        self._ends: deque[tuple[datetime, int]] = deque()
        self._owners = Owners()
        self._blocked: frozenset[int] = frozenset()  # offline
        self._blocked_by: object = None  # what they were found by
        self._published = _Published(datetime.min.replace(tzinfo=UTC), range(1), {})

    def numbers(self) -> range:
        """Of the lists that are in use. Raises as `signed`."""
        self._be_fresh()
        return self._published.numbers

    def signed(self, number: int) -> str:
        """The signed list. Raises UnknownList, or DatabaseError if STATUS_LIST_HORIZON is over."""
        self._be_fresh()
        lists = self._published
        # The next one as well: another node may have begun it just now.
        if number > len(lists.numbers):
            raise UnknownList(number)
        if number not in lists.signed:
            lists.signed[number] = _sign(lists, number)
        return lists.signed[number]

    def keep_fresh(self) -> None:
        """From now on only a thread reads."""
        self.is_kept_fresh = True
        repeat(self.look, READ_EVERY_SECONDS, logger, "status lists not read")

    def look(self) -> None:
        """Reads the database and always the files of operators. Raises django.db.DatabaseError."""
        try:
            with answered_within(ANSWER_SECONDS):
                self.read()
                if settings.OFFLINE_BLOCK_KEYS:  # without any, no file is accepted
                    self._owners.read(self._published.at)
                offline_blocks().compare_with_registry()
        finally:
            self._block_offline()

    def read(self) -> None:
        """Reads what has changed, and ends what is no longer good. Raises DatabaseError."""
        with self._reading:
            before = uptime()
            state = _read_state()
            if state.is_due:
                end_indexes(state.at)
                state = _read_state()
            is_all = state.last_number < self._last_number or (
                before - self._read_all_at > _READ_ALL_AFTER_SECONDS
            )
            ended = []
            if is_all or state.last_number > self._last_number:
                rows = EndedStatusIndex.objects.filter(
                    number__gt=0 if is_all else self._last_number, ended_at__gt=state.at - SET_FOR
                )
                ended = list(rows.order_by("number").values_list("ended_at", "index"))
            if is_all:
                self._bits, self._read_all_at = {}, before
                self._ends.clear()
            if state.last_number < self._last_number:  # a backup was restored
                self._owners = Owners()
            changed = self._take(state.at, ended)
            known = {} if is_all else self._published.compressed
            if is_all:
                changed |= {index // LIST_LENGTH for index in self._blocked}
            compressed = known | {number: self._compressed(number) for number in changed}
            highest_index = max(state.highest_index, *(index for _at, index in ended), 0)
            numbers = range(highest_index // LIST_LENGTH + 1)
            self._published = _Published(state.at, numbers, compressed)
            self._last_number, self._read_at = state.last_number, before

    def age_seconds(self) -> float:
        """Since they were read; infinite if they never were."""
        return uptime() - self._read_at

    def _be_fresh(self) -> None:
        if not self.is_kept_fresh and self.age_seconds() >= READ_EVERY_SECONDS:
            try:
                self.look()
            except DatabaseError:
                logger.warning("status lists not read", exc_info=True)
        if self.age_seconds() > settings.STATUS_LIST_HORIZON.total_seconds():
            raise OperationalError("the status lists could not be read, and the last have expired")

    def _block_offline(self) -> None:
        """Sets the bits of clients that are blocked offline; the lists get no newer date."""
        blocks = offline_blocks()
        blocks.look(datetime.now(UTC))
        found_by = self._owners, self._owners.version, tuple(blocks.since)
        if found_by == self._blocked_by:
            return
        self._blocked_by = found_by
        with self._reading:
            before, self._blocked = self._blocked, self._owners.indexes_of(blocks.since)
            changed = {index // LIST_LENGTH for index in before ^ self._blocked}
            if changed:
                compressed = {number: self._compressed(number) for number in changed}
                lists = self._published
                self._published = replace(
                    lists, compressed=lists.compressed | compressed, signed={}
                )

    def _compressed(self, number: int) -> str:
        bits = bytearray(self._bits.get(number) or LIST_LENGTH // 8)
        for index in self._blocked:
            if index // LIST_LENGTH == number:
                bits[index % LIST_LENGTH // 8] |= 1 << index % 8
        return compress(bits)

    def _take(self, at: datetime, ended: list[tuple[datetime, int]]) -> set[int]:
        """The numbers of the lists that have changed."""
        self._ends.extend(ended)
        changed = {self._put(index, is_set=True) for _at, index in ended}
        while self._ends and self._ends[0][0] <= at - SET_FOR:
            changed.add(self._put(self._ends.popleft()[1], is_set=False))
        return changed

    def _put(self, index: int, *, is_set: bool) -> int:
        number, idx = divmod(index, LIST_LENGTH)
        bits = self._bits.setdefault(number, bytearray(LIST_LENGTH // 8))
        place, bit = idx // 8, 1 << idx % 8
        bits[place] = bits[place] | bit if is_set else bits[place] & ~bit
        return number


def _sign(lists: _Published, number: int) -> str:
    lst = lists.compressed.get(number) or _none_set()
    horizon = settings.STATUS_LIST_HORIZON
    claims = list_claims(settings.AUTH_URL, number, lst, lists.at, horizon)
    return sign(claims, current_key_ring(lists.at).signer(lists.at), TYP)


@cache
def _none_set() -> str:
    return compress(bytes(LIST_LENGTH // 8))


def _read_state() -> _State:
    if connection.vendor == "postgresql":
        now = "statement_timestamp()"
        ((at, *state),) = fetch_through_django(_STATE.format(clock=now, now=now), ())
    else:
        at = datetime.now(UTC)
        moment = connection.ops.adapt_datetimefield_value(at)
        ((_none, *state),) = fetch_through_django(_STATE.format(clock="NULL", now="%s"), [moment])
    last_number, highest_index, is_due = state
    return _State(at, last_number or 0, highest_index or 0, bool(is_due))


_lists = StatusLists()


def status_lists() -> StatusLists:
    """Those of this process."""
    return _lists


def forget_status_lists() -> None:
    """As in a new process: after a fork, and in tests."""
    global _lists  # noqa: PLW0603 - the only state of the process; a forked lock may be held
    _lists = StatusLists()


os.register_at_fork(after_in_child=forget_status_lists)
