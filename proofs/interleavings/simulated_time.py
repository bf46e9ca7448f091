"""The time of the database and of every node, which passes only when a run lets it pass.

So a run is repeated exactly by its seed, and windows end without waiting. The statements of the
login are unchanged: for the sessions of a run, `statement_timestamp()` is another function.
"""

from datetime import UTC, datetime, timedelta

import pytest

# A session with this search path finds our function before that of PostgreSQL.
SEARCH_PATH = "simulated, pg_catalog, public"
CREATE = """
CREATE SCHEMA simulated;
CREATE FUNCTION simulated.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT current_setting('simulated.now')::timestamptz $$"""
SHOW_TIME = "SELECT set_config('simulated.now', %s, false)"
LOCK_TIMEOUT = "2ms"  # one thread acts, so a session that has to wait here would wait for ever
_UPTIME_AT_START = 1000.0


class SimulatedTime:
    """What time it is for the database and, a little off, for the node that acts at present."""

    def __init__(self) -> None:
        self.started = self.now = datetime.now(UTC)
        self.off = timedelta()  # of the node that acts

    def uptime(self) -> float:
        return _UPTIME_AT_START + (self.now - self.started).total_seconds()

    def wall_clock(self) -> datetime:
        return self.now + self.off

    def put_in_force(self, patch: pytest.MonkeyPatch) -> None:
        """The nodes of this process read this time."""
        patch.setattr("tokens.operations.login.uptime", self.uptime)
        patch.setattr("tokens.operations.clock.uptime", self.uptime)
        patch.setattr("tokens.operations.clock.wall_clock", self.wall_clock)
