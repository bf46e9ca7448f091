"""`demo`: the embedded start, from nothing to a service with sample data (contract 6)."""

import fcntl
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from identity.demo.earlier_version import refuse_earlier_database
from identity.demo.sample_day import make_sample_day
from identity.demo.sample_registry import INTERMEDIARY, TAXPAYER, Sample, make_sample
from identity.demo.saved_credentials import read_saved_credentials, write_saved_credentials
from identity.demo.server import HOST, refuse_busy_port, serve
from identity.demo_address import save_demo_address
from taxpayers.credentials import Credentials
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import Author

_STAFF = "admin"


class Command(ServiceCommand):
    help = "Start the service with sample data: made by the first run, said again by the next."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument("--no-serve", action="store_true", help="only make the sample data")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        if settings.ENVIRONMENT != "test":
            raise CommandError("The demo makes sample data: it runs with ENVIRONMENT=test only.")
        if not options["no_serve"]:
            refuse_busy_port(options["port"])
        with _one_at_a_time():
            refuse_earlier_database()
            call_command("migrate", verbosity=0, interactive=False)
            sample, password = _make(at)
        return _answer(sample, password, options["port"])

    def say(self, answer: Answer, options: dict[str, Any]) -> None:
        if options["no_serve"]:
            super().say(answer, options)
        else:
            save_demo_address(settings.VAR_DIR, answer.data["auth_url"])
            # The server's own first words come before, so that these stay on the screen.
            serve(options["port"], announce=lambda: super(Command, self).say(answer, options))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
    with (settings.VAR_DIR / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@transaction.atomic
def _make(at: datetime) -> tuple[Sample, str | None]:
    path = settings.VAR_DIR / "demo.json"
    kept = read_saved_credentials(path)
    sample, password = make_sample(kept.sample, at), _staff_password(kept.password)
    write_saved_credentials(path, sample, password)
    make_sample_day(at)  # so that the staff's pages have something to show
    return sample, password


def _staff_password(kept: str | None) -> str | None:
    """The password of the staff user, who is made if missing; None if somebody changed it."""
    users = get_user_model().objects
    staff = users.filter(username=_STAFF).first()
    if staff is None:
        password = secrets.token_urlsafe(12)
        users.create_superuser(_STAFF, password=password)
        return password
    return kept if kept and staff.check_password(kept) else None


def _answer(sample: Sample, password: str | None, port: int) -> Answer:
    # As the settings say it, but for the port asked for.
    auth_url = os.environ.get("AUTH_URL") or f"http://{HOST}:{port}"
    staff_url = os.environ.get("STAFF_URL") or auth_url.replace(f"//{HOST}", "//localhost", 1)
    as_taxpayer = _curl(auth_url, sample.taxpayer)
    on_behalf = f"{_curl(auth_url, sample.intermediary)} -H 'onbehalfof: {TAXPAYER}'"
    data = {
        "auth_url": auth_url,
        "token_endpoint": f"{auth_url}/connect/token",
        "admin_url": f"{staff_url}/admin/",
        "staff": {"username": _STAFF, "password": password},
        "taxpayer": {"tin": TAXPAYER, **asdict(sample.taxpayer)},
        "intermediary": {
            "tin": INTERMEDIARY,
            "onbehalfof": TAXPAYER,
            **asdict(sample.intermediary),
        },
        "curl": {"taxpayer": as_taxpayer, "intermediary": on_behalf},
    }
    said = password or f"changed since; manage.py changepassword {_STAFF}"
    text = f"""
The token service is at {auth_url}

Log in as the taxpayer {TAXPAYER}:

{as_taxpayer}

Log in as the intermediary {INTERMEDIARY} on behalf of the taxpayer {TAXPAYER}:

{on_behalf}

Staff: {staff_url}/admin/  user {_STAFF}  password {said}

More on the same data, from another shell: {_python()} manage.py help
"""
    return Answer(data, text)


def _curl(auth_url: str, credentials: Credentials) -> str:
    return (
        f"curl {auth_url}/connect/token -d grant_type=client_credentials"
        f" -d client_id={credentials.client_id} -d client_secret={credentials.client_secret}"
    )


def _python() -> Path:
    here, python = Path.cwd(), Path(sys.executable)
    return python.relative_to(here) if python.is_relative_to(here) else python
