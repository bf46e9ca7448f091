"""The runbooks of docs/operations.md: each command is run, on a service with a real PostgreSQL."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.live.cluster import is_valid, login_at, new_client
from tests.operations.machine import Machine, blocks_of, commands_of
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, DidNotStart, until
from tests.servers.service import Service, manage
from tests.support.accounts import PASSWORD
from tests.support.erp import Erp
from tests.support.over_http import SIGN_IN, send_form, sign_in

pytestmark = pytest.mark.processes
UNLIMITED = ("--logins-per-minute", "0")
STAFF = "http://staff.example.org"


@pytest.fixture
def machine(tmp_path: Path, postgres: Postgres, postgres_url: str) -> Machine:
    installed = Machine(tmp_path / "machine", postgres, postgres_url)
    installed.install()
    return installed


@pytest.fixture
def node(machine: Machine) -> Iterator[Service]:
    with machine.running() as started:
        yield started


def token(node: Service, erp: Erp) -> str:
    answer = login_at(node, erp)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def kids(node: Service) -> list[str]:
    return [key["kid"] for key in httpx.get(f"{node.url}/.well-known/jwks.json").json()["keys"]]


def wait_until(is_true: Callable[[], bool]) -> None:
    """Each process reads the keys again once a second, and any of them may answer."""
    until(lambda: all(is_true() for _ in range(5)))


def staff_browser(node: Service) -> httpx.Client:
    return httpx.Client(base_url=node.url, headers={"Host": STAFF.removeprefix("http://")})


def test_a_restored_service_goes_on_where_the_dump_was_made(
    machine: Machine, node: Service
) -> None:
    erp, blocked = new_client(node, *UNLIMITED), new_client(node, *UNLIMITED, tin="C1000000002")
    revoked = token(node, erp)
    form = erp.credentials | {"token": revoked}  # and all that it got before
    assert httpx.post(f"{node.url}/connect/revocation", data=form).status_code == 200
    valid = token(node, erp)
    node.manage("block_system_user", blocked.client_id, "--reason", "abuse")
    published = kids(node)
    for commands in blocks_of("Backup"):
        machine.run(commands)
    for file in (machine.folder / "var/backups/identity").iterdir():
        assert file.stat().st_mode & 0o077 == 0
    node.stop()

    shutil.rmtree(machine.settings.parent)
    lost, machine.database_url = machine.database_url, machine.postgres.create_database()
    (restore,) = blocks_of("Restore")
    unpack, *rest = restore.splitlines(keepends=True)
    machine.run(unpack)
    settings = machine.settings.read_text()
    machine.settings.write_text(settings.replace(lost, machine.database_url))
    name = machine.database_url.rpartition("/")[2]
    machine.run("".join(rest).replace("all.dump identity", f"all.dump {name}"))

    with machine.running() as restored:
        assert kids(restored) == published
        assert (is_valid(restored, valid), is_valid(restored, revoked)) == (True, False)
        assert is_valid(restored, token(restored, erp))
        assert login_at(restored, blocked).json()["error"] == "unauthorised_client"


def test_without_its_keys_a_restored_service_says_what_is_missing(machine: Machine) -> None:
    with machine.running():
        pass  # it has made its first signing key
    (machine.settings.parent / "key_encryption_keys").write_text("another key, 48 characters long")
    with pytest.raises(DidNotStart, match="KEY_ENCRYPTION_KEYS"), machine.running():
        pass


def test_the_recipe_leaves_settings_that_others_cannot_read_and_makes_secrets_once(
    machine: Machine,
) -> None:
    etc = machine.settings.parent
    assert etc.stat().st_mode & 0o777 == 0o750
    assert {file.name: file.stat().st_mode & 0o777 for file in etc.iterdir()} == dict.fromkeys(
        ("identity.env", "secret_key", "key_encryption_keys"), 0o640
    ) | {"release_signers": 0o644}
    assert (machine.folder / "var/lib/identity").stat().st_mode & 0o777 == 0o700
    before = (etc / "secret_key").read_text()
    machine.run(blocks_of("Install")[2])
    assert (etc / "secret_key").read_text() == before


def test_watching_overwrites_nothing_of_a_prometheus_that_is_there(machine: Machine) -> None:
    folder = machine.folder / "etc/prometheus"
    folder.mkdir()
    for name in ("prometheus.yml", "alerts.yml"):
        (folder / name).write_text("of the operator")
    (commands,) = (block for block in blocks_of("Watch") if "/etc/prometheus" in block)
    machine.run(commands)
    assert (folder / "identity-alerts.yml").read_text().startswith("# Alerts")
    for name in ("prometheus.yml", "alerts.yml"):
        assert (folder / name).read_text() == "of the operator"


def test_the_nightly_work_by_hand_is_that_of_the_timers(machine: Machine) -> None:
    nightly, rotate = blocks_of("Every night, and now and then")
    machine.run(nightly)
    assert "is published" in machine.run(rotate)
    by_hand = re.findall(r"deploy/manage (.+)", nightly)
    by_timer = [
        command.partition("manage.py ")[2]
        for name in ("nightly", "count")
        for command in commands_of(f"identity-{name}.service")
    ]
    assert by_hand == by_timer


def test_a_leaked_signing_key_is_stopped(machine: Machine, node: Service) -> None:
    erp = new_client(node, *UNLIMITED)
    before = token(node, erp)
    show, stop = blocks_of("A signing key")
    published = machine.run(show, AUTH_URL=node.url)
    (kid,) = re.findall(r'"kid": ?"([^"]+)"', published)
    assert kid == kids(node)[0]
    machine.run(stop, KID=kid)
    wait_until(lambda: not is_valid(node, before))
    wait_until(lambda: kid not in kids(node))
    assert is_valid(node, token(node, erp))


def test_a_leaked_dump_ends_sessions_and_passwords(machine: Machine, node: Service) -> None:
    boss = new_boss_of(node)
    end_sessions, new_password = blocks_of("A database dump")
    with staff_browser(node) as browser:
        sign_in(browser, STAFF, boss)
        assert browser.get("/admin/").status_code == 200
        machine.run(end_sessions)
        assert browser.get("/admin/").status_code == 302
    assert "first password" in machine.run(new_password, ACCOUNT=boss)
    assert password_is(node, boss, PASSWORD) is False


def password_is(node: Service, username: str, password: str) -> bool:
    with staff_browser(node) as browser:
        form = {"login": username, "password": password}
        answer = send_form(browser, SIGN_IN, STAFF, **form)
    return answer.status_code == 302


def test_a_leaked_staff_account_is_closed(machine: Machine, node: Service) -> None:
    boss = new_boss_of(node)
    assert password_is(node, boss, PASSWORD)
    new_sign_in, close = blocks_of("A staff account")
    printed = machine.run(new_sign_in, ACCOUNT=boss)
    assert password_is(node, boss, PASSWORD) is False
    assert "Removed:" in printed
    assert "nothing" not in printed
    node.manage("create_account", "lim", "--name", "Lim", "--role", "registrar")
    assert "can no longer sign in" in machine.run(close, ACCOUNT="lim")


def test_a_leaked_client_secret_is_replaced(machine: Machine, node: Service) -> None:
    erp = new_client(node, *UNLIMITED)
    old_token = token(node, erp)
    rotate, revoke_old = blocks_of("A client secret")
    printed = machine.run(rotate, CLIENT_ID=erp.client_id)
    (new_secret,) = re.findall(r"\bcs_test_\w+", printed)
    (hint,) = re.findall(rf"revoke_secret {erp.client_id} (\S+)", printed)
    new = Erp(erp.client_id, new_secret)
    assert login_at(node, erp).status_code == login_at(node, new).status_code
    machine.run(revoke_old, CLIENT_ID=erp.client_id, HINT=hint)
    assert login_at(node, erp).json()["error"] == "invalid_client"
    assert not is_valid(node, old_token)
    assert is_valid(node, token(node, new))


def test_leaked_encryption_keys_are_replaced(machine: Machine) -> None:
    file = machine.settings.parent / "key_encryption_keys"
    leaked = file.read_text().strip()
    add, remove = blocks_of("KEY_ENCRYPTION_KEYS")
    _show, stop = blocks_of("A signing key")
    with machine.running() as node:
        erp = new_client(node, *UNLIMITED)
        before = token(node, erp)
    machine.run(add)
    newest, former = file.read_text().strip().split(",")
    assert former == leaked != newest
    with machine.running() as node:
        assert is_valid(node, before)  # no outage for anybody so far
        machine.run(stop, KID=kids(node)[0])
        wait_until(lambda: not is_valid(node, before))
    machine.run(remove)
    assert file.read_text().strip() == newest
    assert file.stat().st_mode & 0o777 == 0o640
    with machine.running() as node:
        assert is_valid(node, token(node, erp))


@pytest.mark.parametrize("with_fallback", [True, False])
def test_a_leaked_secret_key_is_replaced(machine: Machine, with_fallback: bool) -> None:
    etc = machine.settings.parent
    leaked = (etc / "secret_key").read_text()
    replace, reset = blocks_of("SECRET_KEY")
    with machine.running() as node:
        boss = new_boss_of(node)
    machine.run(replace)
    assert (etc / "secret_key").read_text() != leaked
    assert (etc / "secret_key_fallbacks").read_text() == leaked
    if with_fallback:
        fallback = f"SECRET_KEY_FALLBACKS_FILE={etc / 'secret_key_fallbacks'}\n"
        machine.settings.write_text(machine.settings.read_text() + fallback)
    with machine.running() as node, staff_browser(node) as browser:
        if with_fallback:
            sign_in(browser, STAFF, boss)
            assert browser.get("/admin/").status_code == 200
        else:
            assert "Removed: " in machine.run(reset, ACCOUNT=boss)
            assert password_is(node, boss, PASSWORD)  # and then sets up a new second factor


def new_boss_of(node: Service) -> str:
    """A superuser whose second factor is encrypted with the key of this very node."""
    code = "from tests.support.accounts import new_staff, with_totp; with_totp(new_staff())"
    manage(node.environment, "shell", "--no-imports", "-c", code)
    return "boss"


BACKUP = CHECKOUT / "docs" / "backup.md"


def logins_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM login_events").fetchone()
    assert row
    return int(row[0])


def test_the_registry_comes_back_first_and_its_logins_while_clients_log_in(
    machine: Machine, postgres: Postgres
) -> None:
    with machine.running() as node:
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
    with machine.running() as node:
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


def test_what_could_meet_the_wrong_database_is_refused(machine: Machine) -> None:
    """And behind PgBouncer nothing is dumped."""
    manage, file = "/opt/identity/deploy/manage", "/var/backups/identity/a.dump"
    machine.run(f"{manage} migrate; {manage} dump {file}")
    name = machine.database_url.rpartition("/")[2]
    wrong = f"DATABASE_URL leads to {name}, not identity"
    for command, says in {
        f"restore {file} {name}": f"{name} is not empty",
        f"restore {file} identity": wrong,
        f"restore {file} identity --only-logins": wrong,
        "dump /nowhere/x.dump": "/nowhere/x.dump",
    }.items():
        done = machine.tried(f"{manage} {command}")
        assert (done.returncode, says in done.stderr) == (1, True), done.stderr
    settings = machine.settings.read_text()
    pooled = f"{machine.database_url}?pooling=transaction"
    machine.settings.write_text(settings.replace(machine.database_url, pooled))
    done = machine.tried(f"{manage} dump /var/backups/identity/b.dump")
    assert "leads to PgBouncer" in done.stderr
    assert [dump.name for dump in (machine.folder / "var/backups/identity").iterdir()] == ["a.dump"]
