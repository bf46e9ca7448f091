"""`latency`: how long clients wait when the service is busy but not overloaded."""

from statistics import median

from bench import targets
from bench.clients import Population
from bench.measure import Case, measure, meet_clients
from bench.peers.service import LOGIN
from bench.report import Table, progress
from bench.session import Session
from bench.targets import Target

_BUSY_SHARE = 0.7


def run(
    session: Session, users: int = 1_000_000, rounds: int = 5, seconds: float = 8.0
) -> list[Table]:
    """Latency at 70 percent of the highest throughput, with clients that come at random moments."""
    population = Population(users)
    case = Case("latency", LOGIN, LOGIN.start(session, population), population, connections=64)
    meet_clients([case])
    session.settle()
    highest, latencies = [], []
    for _ in range(rounds):
        highest.append(measure(case, seconds).per_second)
        rate = highest[-1] * _BUSY_SHARE
        latencies.append(measure(case, seconds, rate))
        progress(f"{rate:.0f} a second: p99 {latencies[-1].p99_ms:.1f} ms")
    ratio = median(run.p99_ms / run.p50_ms for run in latencies)
    line = (
        f"{median(highest):.0f}",
        f"{median(run.p50_ms for run in latencies):.1f}",
        f"{median(run.p99_ms for run in latencies):.1f}",
        f"{ratio:.1f}",
    )
    headings = ("highest per second", "at 70% of it: p50 ms", "p99 ms", "p99 / p50")
    note = f"{users:,} users, medians of {rounds} rounds of {seconds} s."
    target = Target("p99 at 70 % of the highest throughput, of p50", 10, 5, decimals=1)
    return [
        Table("latency", headings, [line], note),
        targets.table("latency targets", [(target, ratio)], note),
    ]
