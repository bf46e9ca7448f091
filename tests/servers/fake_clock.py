"""A clock that tests set: for one program and what it starts, by libfaketime, which comes from a
wheel of the development lock file.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from tests.servers.processes import NotAvailable


@dataclass(frozen=True)
class FakeClock:
    """Programs that start with `environment` see it; timers and the time since the start do not."""

    library: Path
    file: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",  # second: how often each program looks at the file
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "NO_FAKE_STAT": "1",
            "FAKE_UTIME": "0",
        }

    def step(self, seconds: int) -> None:
        """From now on it is so many seconds ahead of the true time; negative: behind."""
        changed = self.file.with_suffix(".new")
        changed.write_text(f"{seconds:+d}\n")
        changed.replace(self.file)  # at once: nobody reads half a number


def fake_clock(file: Path) -> FakeClock:
    """A clock that is right until it is set. Raises NotAvailable without libfaketime."""
    found = importlib.util.find_spec("libfaketime")
    folder = Path(found.origin).parent if found and found.origin else None
    libraries = sorted(folder.rglob("libfaketime*.so*")) if folder else []
    if not libraries:
        raise NotAvailable("no libfaketime here: a clock cannot be set for one program alone")
    clock = FakeClock(libraries[0], file)
    clock.step(0)
    return clock
