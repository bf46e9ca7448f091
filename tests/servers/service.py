"""The service as it runs in production, and `manage.py` in its own process."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from identity.configuration.setting_list import SETTINGS
from tests.servers.processes import (
    CHECKOUT,
    Process,
    is_healthy,
    run_python,
    start_process,
    stop_process,
)

GUNICORN = str(Path(sys.executable).parent / "gunicorn")
CONFIGURATION = CHECKOUT / "deploy" / "gunicorn.conf.py"
QUICK = Path(__file__).with_name("quick_config.py")  # the same with shorter deadlines
# What a service in production must be given; the values are good for tests only.
TEST_SECRETS = {
    "SECRET_KEY": "only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789",
    "KEY_ENCRYPTION_KEYS": "only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz",
}


def clean_environment() -> dict[str, str]:
    ours = {*SETTINGS, *(f"{name}_FILE" for name in SETTINGS), "DJANGO_SETTINGS_MODULE"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def service_environment(var: Path, port: int, **settings: str) -> dict[str, str]:
    if settings.get("ENVIRONMENT") == "live":  # at this address without TLS, on SQLite
        risks = {"ACCEPTED_RISKS": "tokens.W001,tokens.W004"}
        settings = {"DATABASE_URL": f"sqlite://{var}/identity.sqlite3"} | risks | settings
    return {
        **clean_environment(),
        **TEST_SECRETS,
        "PORT": str(port),
        "AUTH_URL": f"http://127.0.0.1:{port}",
        "VAR_DIR": str(var),
        "ALLOWED_HOSTS": "*",
        **settings,
    }


Result = TypeVar("Result")


@dataclass
class Service:
    url: str
    environment: Mapping[str, str]
    process: Process
    log_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def manage(self, *arguments: str) -> Any:
        """What `manage.py ARGUMENTS --json` answers on the same data."""
        from tests.support.command_line import json_output_of  # needs Django's models

        return self.run(lambda: json_output_of(*arguments))

    def run(self, function: Callable[[], Result]) -> Result:
        """What the function returns; its queries go to the database of the service.

        It runs in a thread of this process, which is much quicker than to start another process,
        and has no event loop (Playwright's), where Django refuses to query. Passwords are hashed as
        the service does it.
        """
        from django.conf import global_settings
        from django.test import override_settings

        from tests.support.command_line import other_database

        def on_its_database() -> Result:
            url = self.environment.get("DATABASE_URL", "")
            with (
                other_database(url, Path(self.environment["VAR_DIR"])),
                override_settings(PASSWORD_HASHERS=global_settings.PASSWORD_HASHERS),
            ):
                return function()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(on_its_database).result()

    def stop(self) -> None:
        """End it at once, as a power cut does: it takes seconds to stop in order (SIGTERM)."""
        stop_process(self.process, signal.SIGKILL)


def set_django_up(var: Path, database_url: str = "") -> None:
    """For a program that is no test and runs in this process what tests run; data are in `var`."""
    environment = clean_environment() | {
        **TEST_SECRETS,
        "VAR_DIR": str(var),
        "ALLOWED_HOSTS": "*",
        "DJANGO_SETTINGS_MODULE": "identity.settings",
        "DATABASE_URL": database_url,
    }
    os.environ.clear()
    os.environ.update(environment)
    import django

    django.setup()


def is_ready(url: str) -> bool:
    return is_healthy(f"{url}/health/ready")


def start_service(
    environment: Mapping[str, str], log_file: Path, configuration: Path = CONFIGURATION
) -> Service:
    url = f"http://127.0.0.1:{environment['PORT']}"
    command = [GUNICORN, "--config", str(configuration)]
    process = start_process(command, log_file, lambda: is_ready(url), env=environment)
    return Service(url, environment, process, log_file)


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """The standard output of a `manage.py` command; its error output is the error's message."""
    done = run_python(["manage.py", *arguments], environment)
    if done.returncode:
        raise RuntimeError(f"manage.py {' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout
