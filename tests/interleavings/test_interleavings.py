import random
from pathlib import Path

import pytest

from tests.interleavings.run import run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.slow]

STEPS = 100_000


def test_quick(tmp_path: Path) -> None:
    import time
    import cProfile, pstats

    t = time.process_time()
    pr = cProfile.Profile()
    pr.enable()
    state = run(1, 5000, tmp_path)
    pr.disable()
    pstats.Stats(pr).sort_stats("tottime").print_stats(25)
    print(time.process_time() - t, state.outcomes, state.changes)
