"""`python -m proofs.storm [--clients 1000000]`: the storm after an outage."""

import argparse
import os
import sys
from datetime import UTC, datetime

import django


def main() -> int:
    parser = argparse.ArgumentParser(description="The storm after an outage.")
    parser.add_argument("--clients", type=int, default=1_000_000)
    clients = parser.parse_args().clients
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    os.environ.setdefault("LOG_LEVEL", "ERROR")  # a line for each login otherwise
    django.setup()
    from proofs.storm.simulation import simulate  # needs Django's settings

    began = datetime.now(UTC)
    seen = simulate(clients, processes=8, per_second=500, minutes=75, seed=7)
    sys.stdout.write(
        f"{sum(seen.tokens.values()):,} tokens, {sum(seen.refused.values()):,} x 503\n"
    )
    done = ", ".join(f"{(n + 1) * 10} % {at:.0f} s" for n, at in enumerate(seen.served_at))
    sys.stdout.write(
        f"tokens: {done}; {seen.waiting:,} clients without; slowest login {seen.slowest:.2f} s;"
        f" simulated in {(datetime.now(UTC) - began).total_seconds():.0f} s\n"
    )
    return int(seen.waiting > clients / 100 or seen.slowest > 2)


if __name__ == "__main__":
    sys.exit(main())
