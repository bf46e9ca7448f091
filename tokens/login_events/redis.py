"""Counters in Redis or Valkey, events in the database (contract 6, REDIS_URL).

The counter's key lives as long as the client's minute, so nothing has to be cleaned up. What fails
is counted in the database all the same: it is rare, and its table has a fixed size.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import cast

import redis

from tokens.login_events.entries import CountedLogin, Event, FailedLogin, LimiterOutOfReach
from tokens.login_events.store import LoginEventStore
from tokens.rate_limits.limits import WINDOW, Quota, Throttle

# Atomic on the server: {used, milliseconds to the end of the minute}, used 0 if denied.
_COUNT = """
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local limit = tonumber(ARGV[1])
if limit > 0 and used >= limit then
  return {0, redis.call('PTTL', KEYS[1])}
end
used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {used, redis.call('PTTL', KEYS[1])}
"""
_TIMEOUT_SECONDS = 1.0


class RedisCountedLedger:
    """See `LoginEventStore`. `events` keeps everything but the counters of authenticated logins."""

    def __init__(self, events: LoginEventStore, url: str) -> None:
        self._events = events
        self._redis = redis.Redis.from_url(
            url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        self._count = self._redis.register_script(_COUNT)

    def add(self, event: Event) -> None:
        self._events.add(event)

    def add_failed(self, event: Event, failed: FailedLogin) -> Throttle | None:
        return self._events.add_failed(event, failed)

    def add_counted(self, event: Event, counted: CountedLogin) -> Quota | Throttle:
        # Counted first: if the event fails, a login is lost to the client, not to the record.
        milliseconds = int(WINDOW / timedelta(milliseconds=1))
        with _out_of_reach():
            used, left = cast(
                "tuple[int, int]",
                self._count(
                    keys=[_key(counted.system_user_id)], args=[counted.limit, milliseconds]
                ),
            )
        ends_at = counted.at + timedelta(milliseconds=max(left, 0))
        if used == 0:
            return Throttle(ends_at, counted.limit)
        # The database observes only: it is told of the event and of the use of the secret.
        self._events.add_counted(event, counted._replace(limit=0))
        return Quota(counted.limit, used, ends_at - WINDOW)

    def quota(self, system_user_id: int, limit: int, at: datetime) -> Quota:
        key = _key(system_user_id)
        with _out_of_reach():
            used, left = self._redis.get(key), self._redis.pttl(key)
        if used is None:
            return Quota(limit, 0, at)
        ends_at = at + timedelta(milliseconds=max(left, 0))
        return Quota(limit, int(cast("bytes", used)), ends_at - WINDOW)


@contextmanager
def _out_of_reach() -> Iterator[None]:
    try:
        yield
    except redis.exceptions.RedisError as error:
        raise LimiterOutOfReach from error


def _key(system_user_id: int) -> str:
    return f"logins:{system_user_id}"
