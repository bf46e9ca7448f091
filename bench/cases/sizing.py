"""What a country needs, where a login costs so much. Pure."""

from math import ceil

from bench.figures import Figures
from bench.report import Table

_CLIENTS = (100_000, 1_000_000, 5_000_000, 20_000_000, 50_000_000)
# Each client logs in once an hour; in the busiest minutes three times as many come as on average.
_PEAK = 3
# Beyond this share of the highest throughput clients begin to wait for each other.
_BUSY_SHARE = 0.7


def table(login: Figures) -> Table:
    """Cores for the service and for PostgreSQL."""

    def cores(per_second: float, cpu_ms: float) -> str:
        return f"{ceil(per_second * cpu_ms / 1000 / _BUSY_SHARE):,}"

    lines = []
    for clients in _CLIENTS:
        mean, peak = clients / 3600, clients / 3600 * _PEAK
        needed = cores(peak, login.server_cpu_ms), cores(peak, login.database_cpu_ms)
        events = f"{clients * 24 / 1e6:,.1f}"
        lines.append((f"{clients:,}", f"{mean:,.0f}", f"{peak:,.0f}", *needed, events))
    headings = (
        *("clients", "logins a second", "at peak", "cores for the service"),
        *("cores for PostgreSQL", "million events a day"),
    )
    return Table("sizing", headings, lines, "From the figures above.")
