"""`demo`: the embedded start, from nothing to a service with sample data (contract 6)."""

import fcntl
import json
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

from taxpayers.credentials import Credentials
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.sample import INTERMEDIARY, TAXPAYER, make_sample
from taxpayers.services import Author
from tokens.management.serving import HOST, refuse_busy_port, serve

_STAFF = "admin"
# What was made by the first run, to be said again by the next: file name in VAR_DIR.
_KEPT = "demo.json"


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
            call_command("migrate", verbosity=0, interactive=False)
            made = _make(at)
        return _answer(made, options["port"])

    def say(self, answer: Answer, options: dict[str, Any]) -> None:
        if options["no_serve"]:
            super().say(answer, options)
        else:
            # The server's own first words come before, so that these stay on the screen.
            serve(options["port"], announce=lambda: super(Command, self).say(answer, options))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (settings.VAR_DIR / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@transaction.atomic
def _make(at: datetime) -> dict[str, Any]:
    path = settings.VAR_DIR / _KEPT
    kept = _read(path)
    sample = make_sample(
        {
            identifier: Credentials(**kept[role])
            for identifier, role in ((TAXPAYER, "taxpayer"), (INTERMEDIARY, "intermediary"))
            if role in kept
        },
        at,
    )
    made = asdict(sample) | {"staff": _staff(kept.get("staff", {}).get("password"))}
    _write(path, made)
    return made


def _staff(kept_password: str | None) -> dict[str, str | None]:
    users = get_user_model().objects
    staff = users.filter(username=_STAFF).first()
    if staff is None:
        kept_password = secrets.token_urlsafe(12)
        users.create_superuser(_STAFF, password=kept_password)
    elif not (kept_password and staff.check_password(kept_password)):
        kept_password = None  # somebody chose another since
    return {"username": _STAFF, "password": kept_password}


def _read(path: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept


def _write(path: Path, made: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=2)
    fresh.replace(path)


def _answer(made: dict[str, Any], port: int) -> Answer:
    auth_url = os.environ.get("AUTH_URL") or f"http://{HOST}:{port}"
    as_taxpayer = _curl(auth_url, **made["taxpayer"])
    on_behalf = f"{_curl(auth_url, **made['intermediary'])} -H 'onbehalfof: {TAXPAYER}'"
    data = {
        "auth_url": auth_url,
        "token_endpoint": f"{auth_url}/connect/token",
        "admin_url": f"{auth_url}/admin/",
        "staff": made["staff"],
        "taxpayer": {"tin": str(TAXPAYER), **made["taxpayer"]},
        "intermediary": {
            "tin": str(INTERMEDIARY),
            "onbehalfof": str(TAXPAYER),
            **made["intermediary"],
        },
        "curl": {"taxpayer": as_taxpayer, "intermediary": on_behalf},
    }
    password = made["staff"]["password"] or f"changed since; manage.py changepassword {_STAFF}"
    text = f"""
The token service is at {auth_url}

Log in as the taxpayer {TAXPAYER}:

{as_taxpayer}

Log in as the intermediary {INTERMEDIARY} on behalf of the taxpayer {TAXPAYER}:

{on_behalf}

Staff: {auth_url}/admin/  user {_STAFF}  password {password}

More on the same data, from another shell: {_python()} manage.py help
"""
    return Answer(data, text)


def _curl(auth_url: str, *, client_id: str, client_secret: str) -> str:
    return (
        f"curl {auth_url}/connect/token -d grant_type=client_credentials"
        f" -d client_id={client_id} -d client_secret={client_secret}"
    )


def _python() -> Path:
    here, python = Path.cwd(), Path(sys.executable)
    return python.relative_to(here) if python.is_relative_to(here) else python
