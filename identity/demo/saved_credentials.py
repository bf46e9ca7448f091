"""What the demo made, in a file for its owner alone, to be said again by the next run."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from identity.demo.sample_registry import Sample
from taxpayers.credentials import Credentials


@dataclass(frozen=True, slots=True)
class SavedCredentials:
    """The sample's credentials, and the staff user's password; None: not known."""

    sample: Sample | None = None
    password: str | None = None


def read_saved_credentials(path: Path) -> SavedCredentials:
    """What is in the file; nothing if it is not there or not whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        sample = Sample(Credentials(**found["taxpayer"]), Credentials(**found["intermediary"]))
        return SavedCredentials(sample, found["password"])
    except (OSError, ValueError, TypeError, KeyError):
        return SavedCredentials()


def write_saved_credentials(path: Path, sample: Sample, password: str | None) -> None:
    """Replace the file at once, so that no reader finds half of it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(sample) | {"password": password}, file, indent=2)
    fresh.replace(path)
