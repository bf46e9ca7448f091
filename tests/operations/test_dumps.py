"""`dump` and `restore`: the registry first, its logins while the service runs, never over data."""

import re

import psycopg
import pytest

from tests.live.cluster import login_at, new_client
from tests.operations.machine import Machine, blocks_of
from tests.operations.test_runbooks import UNLIMITED, is_valid, machine, token
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, stopping

pytestmark = pytest.mark.processes

BACKUP = CHECKOUT / "docs" / "backup.md"
__all__ = ["machine"]  # a fixture


def logins_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM login_events").fetchone()
    assert row
    return int(row[0])


def test_the_registry_comes_back_first_and_its_logins_while_clients_log_in(
    machine: Machine, postgres: Postgres
) -> None:
    node = machine.start()
    with stopping(node):
        erp = new_client(node, *UNLIMITED)
        before = token(node, erp)
        lost = machine.database_url
        (registry,) = blocks_of("The registry, every hour", document=BACKUP)
        machine.run(registry)
        assert re.fullmatch(
            r'backup_last_success_timestamp_seconds\{kind="dump"\} \d{10}\n',
            (machine.folder / "identity-dump.prom").read_text(),
        )
    side = machine.settings.with_name("side.env")
    side.write_text(machine.settings.read_text())
    machine.database_url = postgres.create_database()
    machine.settings.write_text(side.read_text().replace(lost, machine.database_url))
    manage = "/opt/identity/deploy/manage"
    name = machine.database_url.rpartition("/")[2]
    machine.run(f"{manage} restore /var/backups/identity/registry.dump {name}; {manage} migrate")
    assert logins_in(machine.database_url) == 0
    node = machine.start()
    with stopping(node):
        assert not is_valid(node, before), "no token without the record of its login"
        assert login_at(node, erp).status_code == 200
        *_, logins = blocks_of("Back to a moment", document=BACKUP)
        take, give = logins.replace("dump identity", f"dump {name}").splitlines(keepends=True)
        machine.run(take + give)
        assert logins_in(machine.database_url) == logins_in(lost) + 1
        assert is_valid(node, before)
        assert machine.tried(give).returncode == 1
        assert logins_in(machine.database_url) == logins_in(lost) + 1
        assert login_at(node, erp).status_code == 200


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("restore {file} {name}", "{name} is not empty"),
        ("restore {file} identity", "DATABASE_URL leads to {name}, not identity"),
        ("restore {file} identity --only-logins", "DATABASE_URL leads to {name}, not identity"),
        ("dump /nowhere/x.dump", "/nowhere/x.dump"),
    ],
)
def test_what_could_meet_the_wrong_database_is_refused(
    machine: Machine, command: str, says: str
) -> None:
    manage, file = "/opt/identity/deploy/manage", "/var/backups/identity/a.dump"
    machine.run(f"{manage} migrate; {manage} dump {file}")
    name = machine.database_url.rpartition("/")[2]
    done = machine.tried(f"{manage} {command.format(file=file, name=name)}")
    assert (done.returncode, says.format(name=name) in done.stderr) == (1, True), done.stderr


def test_behind_pgbouncer_nothing_is_dumped(machine: Machine) -> None:
    settings = machine.settings.read_text()
    pooled = f"{machine.database_url}?pooling=transaction"
    machine.settings.write_text(settings.replace(machine.database_url, pooled))
    done = machine.tried("/opt/identity/deploy/manage dump /var/backups/identity/a.dump")
    assert "leads to PgBouncer" in done.stderr
    assert not list((machine.folder / "var/backups/identity").iterdir())
