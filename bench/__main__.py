"""`python -m bench COMMAND`: starts the servers, measures, prints the tables."""

import argparse
import inspect
import signal
import sys
from collections.abc import Callable

from bench import report
from bench.cases import (
    asking,
    comparison,
    files,
    growth,
    latency,
    memory,
    refusals,
    staff_pages,
    start,
    traces,
)
from bench.report import Table
from bench.servers import NotStarted
from bench.session import open_session

# The keyword arguments of each function are the options of the command, with their defaults.
COMMANDS: dict[str, Callable[..., list[Table]]] = {
    "asking": asking.run,
    "compare": comparison.run,
    "files": files.run,
    "growth": growth.run,
    "latency": latency.run,
    "memory": memory.run,
    "refusals": refusals.run,
    "start": start.run,
    "staff-pages": staff_pages.run,
    "traces": traces.run,
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = whole.add_subparsers(required=True, dest="command", metavar="COMMAND")
    for name, run in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.add_argument("--write", action="store_true", help="also into docs/performance.md")
        for option in list(inspect.signature(run).parameters.values())[1:]:
            default = option.default
            is_list = isinstance(default, tuple)
            command.add_argument(
                f"--{option.name}",
                type=type(default[0] if is_list else default),
                nargs="+" if is_list else None,
                default=default,
                help=f"default: {default}",
            )
    return whole


def main() -> None:
    """Runs the command; exits with a message if a limit was exceeded."""
    options = vars(parser().parse_args())
    run, write = COMMANDS[options.pop("command")], options.pop("write")
    # SIGTERM, too, must stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with open_session() as session:
            tables = run(session, **options)
    except NotStarted as error:  # such as: the databases are in use by another run
        sys.exit(str(error))
    for table in tables:
        print(f"\n{table.as_markdown()}\n{table.note}")
        if write:
            report.write(table)
    if problems := [table.problem for table in tables if table.problem]:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
