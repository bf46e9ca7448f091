"""Everything in `var/` is for its owner alone, whatever the umask of the shell that starts it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.private_files import private_folder
from tests.servers.processes import CHECKOUT, free_port, start_process, stopping
from tests.servers.service import Service, is_ready, service_environment
from tests.support.over_http import SIGN_IN

PROGRAMS = Path(sys.executable).parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What anybody but the owner could open, in the folder or below, with its mode."""
    paths = [folder, *folder.rglob("*")]
    found = [path for path in paths if not path.is_symlink() and mode(path) & 0o077]
    return [f"{path.relative_to(folder)} {mode(path):o}" for path in found]


def without_umask(*command: str) -> list[str]:
    """The command, started by a shell that hides nothing."""
    return ["/bin/sh", "-c", 'umask 0; exec "$@"', "sh", *command]


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        without_umask(*command),
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


# --- The entry points -----------------------------------------------------------------------------


@pytest.mark.processes
def test_the_demo_writes_for_its_owner_alone(tmp_path: Path) -> None:
    """What `make run` runs: migrations, keys, sample data, then the server."""
    var, port = tmp_path / "var", free_port()
    environment = service_environment(var, port)
    for name in ("SECRET_KEY", "KEY_ENCRYPTION_KEYS", "AUTH_URL"):
        del environment[name]  # so that it makes its own
    url = f"http://127.0.0.1:{port}"
    process = start_process(
        without_umask(sys.executable, "manage.py", "demo", "--port", str(port)),
        tmp_path / "log",
        lambda: is_ready(url),
        env=environment,
    )
    with stopping(Service(url, environment, process, tmp_path / "log")):
        assert httpx.post(f"{url}/connect/token").status_code == 400  # recorded
        assert httpx.get(f"{url}{SIGN_IN}").status_code == 200
        written = names(var)
        assert open_to_others(var) == []
    assert {"identity.sqlite3", "identity.sqlite3-wal", "identity.sqlite3-shm"} <= written
    assert {"secret_key", "key_encryption_keys", "demo.json", "demo.lock"} <= written
    assert {"demo.address", "login-writers.lock", f"metrics-{port}", "static"} <= written
    assert any(name.endswith(".db") for name in written)  # counters of metrics


@pytest.mark.processes
def test_the_server_writes_for_its_owner_alone(tmp_path: Path, postgres_url: str) -> None:
    var, port = tmp_path / "var", free_port()
    environment = service_environment(var, port, DATABASE_URL=postgres_url)
    url = f"http://127.0.0.1:{port}"
    process = start_process(
        without_umask(str(PROGRAMS / "gunicorn"), "--config", "deploy/gunicorn.conf.py"),
        tmp_path / "log",
        lambda: is_ready(url),
        env=environment,
    )
    node = Service(url, environment, process, tmp_path / "log")
    with stopping(node):
        node.manage("register_taxpayer", "C1000000001", "--name", "Sample")
        issued = node.manage("issue_credentials", "C1000000001", "--name", "ERP")
        form = {"grant_type": "client_credentials", **{k: issued[k] for k in CREDENTIALS}}
        assert httpx.post(f"{url}/connect/token", data=form).status_code == 200
        written = names(var)
        assert open_to_others(var) == []
    assert {"local-facts", "data.mdb", "lock.mdb", f"metrics-{port}"} <= written
    assert any(name.endswith(".db") for name in written)


CREDENTIALS = ("client_id", "client_secret")


@pytest.mark.processes
def test_commands_write_for_their_owner_alone(tmp_path: Path) -> None:
    var = tmp_path / "deep" / "var"
    environment = service_environment(var, 0)
    for name in ("SECRET_KEY", "KEY_ENCRYPTION_KEYS"):
        del environment[name]
    for command in (("migrate", "-v0"), ("collectstatic", "--no-input", "-v0"), ("check",)):
        done = run(environment, sys.executable, "manage.py", *command)
        assert (done.returncode, done.stderr) == (0, "")
    assert {"identity.sqlite3", "secret_key", "styles.css"} <= names(var)
    assert open_to_others(var) == []


@pytest.mark.processes
def test_what_an_earlier_version_left_open_is_closed_by_the_next_start(tmp_path: Path) -> None:
    var = tmp_path / "var"
    (var / "static").mkdir(parents=True)
    for path in (var / "identity.sqlite3", var / "identity.sqlite3-wal", var / "secret_key"):
        path.write_text("")
        path.chmod(0o666)
    (var / "secret_key").write_text("k" * 60)
    var.chmod(0o777)
    (var / "static").chmod(0o755)
    done = run(service_environment(var, 0), sys.executable, "manage.py", "check")
    assert done.returncode == 0, done.stderr
    assert open_to_others(var) == []


@pytest.mark.processes
@pytest.mark.parametrize("program", ["manage.py", "gunicorn"])
def test_a_folder_of_everybody_is_refused_in_one_line(program: str, tmp_path: Path) -> None:
    var = tmp_path / "var"
    var.mkdir()
    var.chmod(0o1777)
    command = {
        "manage.py": (sys.executable, "manage.py", "check"),
        "gunicorn": (str(PROGRAMS / "gunicorn"), "--config", "deploy/gunicorn.conf.py"),
    }[program]
    done = run(service_environment(var, free_port()), *command)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"VAR_DIR: other users can open {var}" in line
    assert f"VAR_DIR={var}/token-service" in line
    assert mode(var) == 0o1777


# --- The folder and the files ---------------------------------------------------------------------


def test_a_missing_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert mode(folder) == 0o700


def test_links_out_of_the_folder_change_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    folder = tmp_path / "var"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "lost").symlink_to(tmp_path / "nowhere")
    private_folder(folder)
    assert mode(outside) == 0o644


@pytest.mark.parametrize("folder", ["/tmp", "/usr", "/proc"])  # noqa: S108 - it must be refused
def test_a_folder_of_the_system_is_never_closed(folder: str) -> None:
    before = mode(Path(folder))
    with pytest.raises(ImproperlyConfigured, match="not this service's own"):
        private_folder(Path(folder))
    assert mode(Path(folder)) == before


def test_a_folder_of_another_user_is_not_closed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user")
    folder = tmp_path / "var"
    folder.mkdir()
    folder.chmod(0o755)
    os.chown(folder, 65534, 65534)
    with pytest.raises(ImproperlyConfigured, match="not this service's own"):
        private_folder(folder)
    assert mode(folder) == 0o755


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="cannot be used: Not a directory"):
        private_folder(tmp_path / "file" / "var")
