"""`python -m bench`: starts the servers, measures, prints (see docs/performance.md)."""

import argparse
from contextlib import ExitStack

from bench import databases, scenarios, servers
from bench.clients import Population
from bench.measure import Case, rounds, rows
from bench.report import as_text, write_json


def main() -> None:
    """Reads the command line and runs what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", help="cases whose name holds one of these, separated by commas")
    given = parser.parse_args()
    population, folder = Population(given.users), databases.bench_folder()
    with ExitStack() as stack:
        server = databases.start(folder)
        stack.callback(server.stop)
        kept = databases.Databases(server)
        stack.callback(kept.drop_copies)
        url = kept.copy(kept.registry(population), "es256")
        pid = server.process.pid
        bare = servers.start_granian("bare", folder, "bench.peers.bare:application")
        stack.callback(bare.stop)
        ours = servers.start_identity("es256", folder, url, pid)
        stack.callback(ours.stop)
        cases = [
            Case("bare view", bare, scenarios.bare(population)),
            Case("bare view", bare, scenarios.bare(population), 64),
            Case("taxpayer", ours, scenarios.taxpayer_login(population)),
            Case("taxpayer", ours, scenarios.taxpayer_login(population), 64),
            Case("intermediary", ours, scenarios.intermediary_login(population)),
            Case("wrong secret", ours, scenarios.wrong_secret(population)),
            Case("blocked", ours, scenarios.blocked(population)),
            Case("hammering", ours, scenarios.hammering(population)),
        ]
        if given.only:
            wanted = given.only.split(",")
            cases = [
                case
                for case in cases
                if case.target is bare or any(part in case.name for part in wanted)
            ]
        measured = rounds(
            cases, count=given.rounds, seconds=given.seconds, settle=kept.settle, progress=print
        )
    table = rows(cases, measured)
    print(as_text(table))
    write_json(table, {"users": given.users}, folder / "latest.json")


if __name__ == "__main__":
    main()
