"""What the demo created, in a file that only its owner may read, so that the next run shows it."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from identity.demo.sample_registry import SampleCredentials
from taxpayers.credentials import Credentials


@dataclass(frozen=True, slots=True)
class SavedCredentials:
    """The credentials of the sample, and the staff user's password; None: it was changed."""

    sample: SampleCredentials
    staff_password: str | None = field(repr=False)


def read_saved_credentials(path: Path) -> SavedCredentials | None:
    """The content of the file; None if it is missing or incomplete."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        sample = SampleCredentials(
            Credentials(**data["taxpayer"]), Credentials(**data["intermediary"])
        )
        return SavedCredentials(sample, data["password"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_saved_credentials(path: Path, saved: SavedCredentials) -> None:
    """Replaces the file in one step: no reader finds half of it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(saved.sample) | {"password": saved.staff_password}, file, indent=2)
    fresh.replace(path)
