"""What a country of so many clients needs, as arithmetic on what was measured."""

from math import ceil

from bench.measure import Figures
from bench.report import Table

_CLIENTS = (100_000, 1_000_000, 5_000_000, 20_000_000, 50_000_000)
# Each client comes once an hour; in the busiest minutes three times as many come as on average.
PEAK = 3
# Beyond this share of the greatest throughput clients begin to wait for each other.
BUSY = 0.7


def table(login: Figures) -> Table:
    """Cores for the service and for PostgreSQL, where a login costs what `login` says."""
    lines = []
    for clients in _CLIENTS:
        peak = clients / 3600 * PEAK
        lines.append(
            (
                f"{clients:,}",
                f"{clients / 3600:,.0f}",
                f"{peak:,.0f}",
                f"{_cores(peak, login.server_cpu_ms):,}",
                f"{_cores(peak, login.database_cpu_ms):,}",
                f"{clients * 24 / 1e6:,.1f}",
            )
        )
    headings = (
        *("clients", "logins a second", "at peak", "cores for the service"),
        *("cores for PostgreSQL", "million events a day"),
    )
    return Table(headings, lines)


def _cores(per_second: float, cpu_ms: float) -> int:
    return ceil(per_second * cpu_ms / 1000 / BUSY)
