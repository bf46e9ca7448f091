"""`make chaos`: faults under load, with real processes, and what became of each promise.

`python -m proofs.chaos [--patroni] [--only NAME…] [--minutes 15] [--list]`; the figures are also in
`var/drill.txt`.
"""

import argparse
import logging
import sys

from tests.servers.processes import folder_of_program
from tests.servers.service import set_django_up


def main() -> int:
    """0 if every scenario passed, and no scenario was left out."""
    parser = argparse.ArgumentParser(description="Faults under load.")
    parser.add_argument("--patroni", action="store_true", help="the leader of Patroni's members")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios", default=())
    parser.add_argument("--minutes", type=float, default=15.0, help="no scenario starts later")
    parser.add_argument("--list", action="store_true", help="the names of the scenarios")
    parser.add_argument("--outage", type=float, default=15.0, help="seconds of those with APIs")
    options = parser.parse_args()
    with folder_of_program("drill") as folder:
        set_django_up(folder)
        logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each request otherwise
        from proofs.chaos.drill import whole_drill

        return whole_drill(options)


if __name__ == "__main__":
    sys.exit(main())
