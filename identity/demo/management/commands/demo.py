"""`demo`: the embedded start, from nothing to a service with sample data (contract 6)."""

import os
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from identity.demo.preparation import (
    INTERMEDIARY,
    OWNERS,
    STAFF_USER,
    TAXPAYER,
    SavedCredentials,
    prepare,
)
from identity.demo.server import HOST, refuse_busy_port, serve
from identity.demo_address import save_demo_address
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.secret_once import login_example
from taxpayers.services import Author


class Command(ServiceCommand):
    help = "Start the service with sample data. The first run creates it, later runs show it again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument("--no-serve", action="store_true", help="only create the sample data")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        if settings.ENVIRONMENT != "test":
            raise CommandError("The demo creates sample data: it runs with ENVIRONMENT=test only.")
        if not options["no_serve"]:
            refuse_busy_port(options["port"])
        return _answer(prepare(at), options["port"])

    def write_answer(self, answer: Output, options: dict[str, Any]) -> None:
        write = super().write_answer
        if options["no_serve"]:
            write(answer, options)
        else:
            save_demo_address(settings.VAR_DIR, answer.data["auth_url"])
            # Once the server is ready: after its own first lines, so that these stay in view.
            serve(options["port"], on_ready=lambda: write(answer, options))


def _answer(credentials: SavedCredentials, port: int) -> Output:
    # The same values as in the settings, except for the port.
    auth_url = os.environ.get("AUTH_URL") or f"http://{HOST}:{port}"
    staff_url = os.environ.get("STAFF_URL") or auth_url.replace(f"//{HOST}", "//localhost", 1)
    sample, password = credentials.sample, credentials.staff_password
    endpoint = f"{auth_url}/connect/token"
    curl = {owner: login_example(sample[owner], endpoint) for owner in OWNERS}
    curl["intermediary"] += f" -H 'onbehalfof: {TAXPAYER}'"
    data: dict[str, Any] = {
        "auth_url": auth_url,
        "token_endpoint": endpoint,
        "admin_url": f"{staff_url}/admin/",
        "staff": {"username": STAFF_USER, "password": password},
        **{owner: asdict(credentials) for owner, credentials in sample.items()},
        "curl": curl,
    }
    data["taxpayer"] |= {"tin": TAXPAYER}
    data["intermediary"] |= {"tin": INTERMEDIARY, "onbehalfof": TAXPAYER}
    here, python = Path.cwd(), Path(sys.executable)
    python = python.relative_to(here) if python.is_relative_to(here) else python
    shown_password = password or f"changed since; manage.py changepassword {STAFF_USER}"
    text = f"""
The token service is at {auth_url}

Log in as the taxpayer {TAXPAYER}:

{curl["taxpayer"]}

Log in as the intermediary {INTERMEDIARY} on behalf of the taxpayer {TAXPAYER}:

{curl["intermediary"]}

As the authority's portal: to register and grant, and to issue ({auth_url}/management-api):

{curl["portal"]}

{curl["issuing"]}

Staff: {staff_url}/admin/  user {STAFF_USER}  password {shown_password}

More commands on the same data, from another shell: {python} manage.py help
"""
    return Output(data, text)
