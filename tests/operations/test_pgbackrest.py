"""docs/backup.md with the real pgBackRest: a base backup, the archive, and back to a moment."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.operations.machine import blocks_of
from tests.servers.processes import CHECKOUT, as_user, free_port, new_folder, program_of

pytestmark = pytest.mark.processes

BACKUP = CHECKOUT / "docs" / "backup.md"
FILES = CHECKOUT / "deploy" / "pgbackrest"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")  # the newest that Debian 12's pgBackRest knows
USER = "nobody" if os.geteuid() == 0 else None


@dataclass
class Machine:
    folder: Path
    port: int
    side_port: int

    def run(self, commands: str, **variables: str) -> str:
        for old, new in (
            ("sudo -u postgres ", ""),
            ("pgbackrest --", f"pgbackrest --config={self.folder}/pgbackrest.conf --"),
            ("/var/lib/postgresql/15", str(self.folder)),
        ):
            commands = commands.replace(old, new)
        with (self.folder / "output").open("w") as written:  # a pipe waits for the server's end
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", commands],
                cwd=self.folder,
                env={
                    "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
                    "PGHOST": str(self.folder),
                    "PGPORT": str(self.port),
                    "PGDATABASE": "postgres",
                    "PGUSER": "postgres",
                    **variables,
                },
                stdout=written,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=120,
                **as_user(USER),
            )
        output = (self.folder / "output").read_text()
        assert done.returncode == 0, output
        return output

    def sql(self, text: str, port: int = 0) -> str:
        return self.run(
            f'psql --no-psqlrc --tuples-only --no-align --port={port or self.port} <<"E"\n{text}\nE'
        ).strip()


@pytest.fixture
def machine() -> Iterator[Machine]:
    program_of("pgbackrest", "pgbackrest")
    program_of("postgresql-15", f"{PROGRAMS}/postgres")
    made = Machine(new_folder("pgbackrest", USER), free_port(), free_port())
    folder = made.folder
    given = (FILES / "pgbackrest.conf").read_text()
    given = given.replace("/var/lib/pgbackrest", f"{folder}/repo").replace("REPLACE", "secret")
    given = given.replace("/var/lib/postgresql/15", str(folder))
    places = "\n".join(f"{name}-path={folder}/{name}" for name in ("log", "lock", "spool"))
    given = given.replace("[global]", f"[global]\n{places}")
    given += f"pg1-port={made.port}\npg1-socket-path={folder}\npg1-user=postgres\n"
    (folder / "pgbackrest.conf").write_text(given)
    start = f"pg_ctl -D main -w -l log.txt -o '-p {made.port} -k {folder} -h 127.0.0.1'"
    try:
        made.run("initdb -D main -A trust -U postgres --no-sync; mkdir log lock spool")
        made.run(f"{start} start")
        _, archive = blocks_of("Base backups and the archive", document=BACKUP)
        settings = archive[: archive.index("systemctl")]
        made.run(f"{settings}\n{start} restart")
        made.run("sudo -u postgres pgbackrest --stanza=identity stanza-create")
        yield made
    finally:
        for data in ("main", "side"):
            if (folder / data / "postmaster.pid").exists():
                made.run(f"pg_ctl -D {data} -m immediate stop")
        shutil.rmtree(folder, ignore_errors=True)  # its archiver may still write


def test_the_database_comes_back_as_it_was_at_a_moment(machine: Machine) -> None:
    unit = (FILES / "pgbackrest@.service").read_text()
    command = unit.partition("ExecStart=")[2].partition("\n")[0]
    command = command.replace("%%", "%").replace("$$", "$").replace("/usr/bin/", "")  # as systemd
    machine.sql("CREATE TABLE logins (number int)")
    for kind in ("check", "backup"):
        machine.run(command.replace("%i", kind))
    # A backup is only for moments after the second in which it ended.
    machine.sql("INSERT INTO logins VALUES (1); SELECT pg_sleep(1)")
    moment = machine.sql("SELECT clock_timestamp()")
    machine.sql("INSERT INTO logins VALUES (2)")
    machine.sql("DROP TABLE logins; SELECT pg_switch_wal()")
    machine.run(command.replace("%i", "check"))  # the archive has all of it
    restore, _logins = blocks_of("Back to a moment", document=BACKUP)
    start = f"-p {machine.side_port} -k {machine.folder}"
    machine.run(restore.replace("-p 5433", start), MOMENT=moment)
    assert machine.sql("SELECT number FROM logins", machine.side_port) == "1"
    assert machine.sql("SHOW archive_mode", machine.side_port) == "off"
    assert not list((machine.folder / "repo").rglob("*.conf"))


def test_a_success_is_a_metric_with_its_moment(tmp_path: Path) -> None:
    for kind in ("check", "backup"):
        environment = {"NODE_EXPORTER_DIR": str(tmp_path), "PATH": os.defpath}
        subprocess.run([FILES / "succeeded", kind], env=environment, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        "identity-check.prom", "identity-backup.prom"
    }  # fmt: skip
