"""`python -m bench COMMAND`: starts the servers, measures, prints (see docs/performance.md)."""

import signal
import sys

from bench.commands import parser


def main() -> None:
    """Reads the command line and runs what it asks for."""
    given = parser().parse_args()
    # However it is stopped, the servers that it started are stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        given.run(given)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
