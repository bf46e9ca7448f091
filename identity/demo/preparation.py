"""Everything that the demo needs before it serves: migrations, sample data, a staff user.

What it created is in a file that only its owner may read, so that the next run shows it.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import transaction

from identity.demo.sample_day import make_sample_day
from identity.demo.sample_registry import SampleCredentials, make_sample_registry
from identity.sandbox.registry import make_sandbox
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


STAFF_USER = "admin"


def prepare(at: datetime) -> SavedCredentials:
    """Create what is missing; what an earlier run created, or staff changed, stays as it is."""
    with _one_at_a_time():
        call_command("migrate", verbosity=0, interactive=False)
        return _create_missing(at)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
    with (settings.VAR_DIR / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@transaction.atomic
def _create_missing(at: datetime) -> SavedCredentials:
    path = settings.VAR_DIR / "demo.json"
    saved = read_saved_credentials(path)
    current = SavedCredentials(
        make_sample_registry(saved.sample if saved else None, at),
        _staff_password(saved.staff_password if saved else None),
    )
    write_saved_credentials(path, current)
    make_sandbox(at)
    make_sample_day(at)  # so that the staff pages have something to show
    return current


def _staff_password(saved: str | None) -> str | None:
    """The password of the staff user, who is created if missing; None if it was changed."""
    users: Any = apps.get_model("staff", "StaffAccount")._default_manager  # it writes the history
    staff = users.filter(username=STAFF_USER).first()
    if staff is None:
        password = secrets.token_urlsafe(12)
        users.create_superuser(STAFF_USER, password=password)
        return password
    return saved if saved and staff.check_password(saved) else None
