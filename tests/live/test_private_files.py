"""Everything in `var/` is for its owner alone, whatever the umask of the shell that starts it.

The demo's files: tests/commands/test_commands_demo.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.private_files import private_folder
from tests.live.cluster import login_at, new_client
from tests.servers.processes import CHECKOUT, completed, free_port, start_process, stopping
from tests.servers.service import CONFIGURATION, GUNICORN, Service, is_ready, service_environment
from tests.support.private import mode, names, open_to_others, without_umask


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return completed(
        without_umask(*command), cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL
    )


@pytest.mark.processes
def test_the_server_writes_for_its_owner_alone(tmp_path: Path, postgres_url: str) -> None:
    var, port = tmp_path / "var", free_port()
    environment = service_environment(var, port, DATABASE_URL=postgres_url)
    url, command = f"http://127.0.0.1:{port}", (GUNICORN, "--config", str(CONFIGURATION))
    log = tmp_path / "log"
    process = start_process(without_umask(*command), log, lambda: is_ready(url), env=environment)
    node = Service(url, environment, process, log)
    with stopping(node):
        assert login_at(node, new_client(node)).status_code == 200
        written = names(var)
        assert open_to_others(var) == []
    assert {"local-facts", "data.mdb", "lock.mdb", f"metrics-{port}"} <= written
    assert any(name.endswith(".db") for name in written)


@pytest.mark.processes
def test_commands_write_for_their_owner_alone(tmp_path: Path) -> None:
    var = tmp_path / "deep" / "var"
    environment = service_environment(var, 0)
    for name in ("SECRET_KEY", "KEY_ENCRYPTION_KEYS"):
        del environment[name]
    for command in (("migrate", "-v0"), ("collectstatic", "--no-input", "-v0")):
        done = run(environment, sys.executable, "manage.py", *command)
        assert (done.returncode, done.stderr) == (0, "")
    assert {"identity.sqlite3", "secret_key", "styles.css"} <= names(var)
    assert open_to_others(var) == []
    # What an earlier version left open is closed by the next start.
    var.chmod(0o777)
    for name, opened in (("identity.sqlite3", 0o666), ("secret_key", 0o644), ("static", 0o755)):
        (var / name).chmod(opened)
    done = run(environment, sys.executable, "manage.py", "check")
    assert done.returncode == 0, done.stderr
    assert open_to_others(var) == []


@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [(sys.executable, "manage.py", "check"), (GUNICORN, "--config", str(CONFIGURATION))],
    ids=["manage.py", "gunicorn"],
)
def test_a_folder_of_everybody_is_refused_in_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    var = tmp_path / "var"
    var.mkdir()
    var.chmod(0o1777)
    done = run(service_environment(var, free_port()), *command)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"VAR_DIR: other users can open {var}" in line
    assert f"VAR_DIR={var}/token-service" in line
    assert mode(var) == 0o1777


def test_a_missing_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert mode(private_folder(tmp_path / "a" / "b")) == 0o700


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


@pytest.mark.parametrize("folder", ["/tmp", "/usr", "/proc", "another user's"])  # noqa: S108 - it must be refused
def test_a_folder_of_the_system_or_of_another_user_is_never_closed(
    folder: str, tmp_path: Path
) -> None:
    path = Path(folder) if folder.startswith("/") else tmp_path / "var"
    if path.parent == tmp_path:
        if os.geteuid() != 0:
            pytest.skip("only root can make a folder of another user")
        path.mkdir()
        path.chmod(0o755)
        os.chown(path, 65534, 65534)
    before = mode(path)
    with pytest.raises(ImproperlyConfigured, match="not this service's own"):
        private_folder(path)
    assert mode(path) == before


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="cannot be used: Not a directory"):
        private_folder(tmp_path / "file" / "var")
