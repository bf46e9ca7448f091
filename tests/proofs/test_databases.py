"""PostgreSQL, standby and PgBouncer of compose.yaml: our scripts with the real programs.

What the image of PostgreSQL itself does (initdb, then a restart) is done here by the tests.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proofs.containers.composed import FOLDER, rendered
from tests.servers.postgres import SETTINGS, Postgres, postgres_user, start_postgres
from tests.servers.processes import (
    as_user,
    changed,
    free_port,
    listens,
    new_folder,
    program_of,
    ran,
    start_process,
    stop_process,
    until,
)

pytestmark = pytest.mark.processes

# Only PostgreSQL's own superuser is believed; everybody else has a password.
_HBA = """local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


@pytest.fixture(scope="module")
def secrets() -> Iterator[Path]:
    """As a container sees them: for the programs' own user."""
    folder = new_folder("secrets", postgres_user())
    subprocess.run([FOLDER / "make_secrets.sh", folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def primary(secrets: Path) -> Iterator[Postgres]:
    server = start_postgres()
    data = server.folder / "data"
    (data / "pg_hba.conf").write_text(_HBA)
    environment = _environment(server, secrets, PGDATA=str(data), PGHOST="127.0.0.1")
    script, user = FOLDER / "postgres" / "primary.sh", as_user(postgres_user())
    ran(["/bin/sh", script], cwd=server.folder, env=environment, **user)
    server.execute("SELECT pg_reload_conf()")
    yield server
    server.stop()


def _environment(server: Postgres, secrets: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": f"{server.programs}:{os.environ['PATH']}",
        "PGPORT": str(server.port),
        "SECRETS": str(secrets),
        "HOME": str(server.folder),
        "LC_ALL": "C",
        **more,
    }


def _identity(secrets: Path, port: int, password: str = "") -> str:
    given = password or (secrets / "database_password").read_text().strip()
    return f"postgresql://identity:{given}@127.0.0.1:{port}/identity"


def test_the_primary_has_the_database_of_the_service_behind_its_password(
    primary: Postgres, secrets: Path
) -> None:
    with psycopg.connect(_identity(secrets, primary.port), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION pg_trgm")  # as a migration does
        row = connection.execute("SELECT current_user, current_database()").fetchone()
    assert row == ("identity", "identity")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(_identity(secrets, primary.port, "wrong"))


def test_the_standby_copies_the_primary_once_and_then_follows_it(
    primary: Postgres, secrets: Path
) -> None:
    folder = new_folder("standby", postgres_user())
    half_a_copy = folder / "data.new"  # of a first start that was interrupted
    half_a_copy.mkdir()
    (half_a_copy / "PG_VERSION").touch()
    for path in (half_a_copy, half_a_copy / "PG_VERSION"):
        shutil.chown(path, postgres_user() or os.geteuid())
    port = free_port()
    given = {**SETTINGS, "port": port, "unix_socket_directories": folder}
    settings = [f"-c{name}={value}" for name, value in given.items()]
    environment = _environment(
        *(primary, secrets),
        PGDATA=str(folder / "data"),
        PRIMARY="127.0.0.1",
        PRIMARY_PORT=str(primary.port),
        TMPDIR=str(folder),
    )

    def start() -> "subprocess.Popen[bytes]":
        return start_process(
            ["/bin/sh", str(FOLDER / "postgres" / "standby.sh"), *settings],
            folder / "log",
            lambda: _follows(port),
            cwd=folder,
            env=environment,
            user=postgres_user(),
        )

    process = start()
    try:
        stop_process(process, signal.SIGINT)
        copied_at = (folder / "data" / "backup_label.old").stat().st_mtime
        with psycopg.connect(_identity(secrets, primary.port), autocommit=True) as connection:
            connection.execute("CREATE TABLE seen (number integer)")
            connection.execute("INSERT INTO seen VALUES (7)")
            process = start()
            row = connection.execute(
                "SELECT active, slot_name FROM pg_replication_slots"
            ).fetchone()
            assert row == (True, "standby")
        with psycopg.connect(_identity(secrets, port), autocommit=True) as standby:
            until(lambda: _arrived(standby))
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                standby.execute("DELETE FROM seen")
        assert (folder / "data" / "backup_label.old").stat().st_mtime == copied_at
        assert not half_a_copy.exists()
        assert (folder / "data").stat().st_mode & 0o777 == 0o700
    finally:
        stop_process(process, signal.SIGINT)
        shutil.rmtree(folder)


def _follows(port: int) -> bool:
    """Whether a standby answers there and receives what the primary writes."""
    try:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute("SELECT status FROM pg_stat_wal_receiver").fetchone()
    except psycopg.OperationalError:
        return False
    return row == ("streaming",)


def _arrived(standby: "psycopg.Connection[tuple[object, ...]]") -> bool:
    try:
        return standby.execute("SELECT number FROM seen").fetchone() == (7,)
    except psycopg.errors.UndefinedTable:
        return False


def test_the_pooler_leads_to_the_primary_with_the_passwords_of_the_secrets(
    primary: Postgres, secrets: Path
) -> None:
    program = program_of("pgbouncer", "pgbouncer")
    folder, port = new_folder("pooler", postgres_user()), free_port()
    shutil.copy(secrets / "pooler_users", folder / "userlist.txt")
    original = (FOLDER.parent / "pgbouncer.ini").read_text()
    here = ("/etc/pgbouncer", str(folder))
    (folder / "pgbouncer.ini").write_text(changed(original, here))
    ours = changed(
        rendered()["configs"]["pooler"]["content"],
        here,
        ("host=primary port=5432", f"host=127.0.0.1 port={primary.port}"),
        (r"listen_addr = \*", f"listen_addr = 127.0.0.1\nlisten_port = {port}"),
    )
    (folder / "container.ini").write_text(ours)
    process = start_process(
        [program, str(folder / "container.ini")],
        folder / "log",
        lambda: listens(port),
        cwd=folder,
        user=postgres_user(),
    )
    try:
        url = (secrets / "database_url").read_text().strip()
        assert url.endswith("?pooling=transaction")
        through = changed(url.partition("?")[0], ("pooler:6432", f"127.0.0.1:{port}"))
        with psycopg.connect(through) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("identity",)
        with pytest.raises(psycopg.OperationalError, match=r"password authentication failed|SASL"):
            psycopg.connect(_identity(secrets, port, "wrong"))
        log = (folder / "log").read_text()
        assert "ERROR" not in log.partition("password")[0], log
    finally:
        stop_process(process, signal.SIGINT)
        shutil.rmtree(folder)
