"""What a node remembers of its clients: a cache in one file, which may be lost or damaged."""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import fields, replace
from pytest_django import Settings

from taxpayers.credentials import hash_secret, new_client_id, new_client_secret
from taxpayers.facts import local
from taxpayers.facts.local import SharedFacts
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.facts.values import (
    Facts,
    FactsQuery,
    IntermediaryFacts,
    PermissionFacts,
    StatusFacts,
)
from taxpayers.identifiers import TaxpayerId
from tests.endpoint.test_rules import CLIENT, OTHER, OWN, REPRESENTED, SECRET
from tokens.operations.node import this_node

Result = TypeVar("Result")

MIB = 2**20
AT = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
FACTS = Facts(CLIENT, SECRET, epoch=7)
QUERY = FactsQuery(CLIENT.client_id, hash_secret("cs_test_secret"), None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "local-facts"


@pytest.fixture
def facts(folder: Path) -> SharedFacts:
    return facts_in(folder)


def facts_in(folder: Path, *, max_bytes: int = 16 * MIB) -> SharedFacts:
    return SharedFacts(folder, max_bytes=max_bytes, key=b"key")


@contextmanager
def another_process() -> Iterator[ProcessPoolExecutor]:
    """A fork of this process, as the workers of a node are forks of one."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as process:
        yield process


def elsewhere(work: Callable[..., Result], *arguments: object) -> Result:
    with another_process() as process:
        return process.submit(work, *arguments).result(30)


# --- What is found --------------------------------------------------------------------------------
def test_what_was_stored_is_found_and_nothing_else(facts: SharedFacts) -> None:
    assert facts.find(QUERY) is None
    facts.store(QUERY, FACTS)
    assert facts.find(QUERY) == FACTS
    for other in (
        replace(QUERY, client_id=new_client_id("test")),
        replace(QUERY, lookup=hash_secret("another")),
        replace(QUERY, on_behalf_of=OTHER),
    ):
        assert facts.find(other) is None


def test_each_taxpayer_on_whose_behalf_a_client_asks_has_its_own_facts(facts: SharedFacts) -> None:
    taxpayers = [None, OWN, OTHER, TaxpayerId(OTHER.tin), TaxpayerId(OWN.tin, "R-1")]
    for epoch, taxpayer in enumerate(taxpayers):
        facts.store(replace(QUERY, on_behalf_of=taxpayer), replace(FACTS, epoch=epoch))
    for epoch, taxpayer in enumerate(taxpayers):
        assert facts.find(replace(QUERY, on_behalf_of=taxpayer)) == replace(FACTS, epoch=epoch)


@pytest.mark.parametrize("epoch", [0, 2**63 - 1, -(2**63)])
def test_every_value_comes_back_as_it_was(facts: SharedFacts, epoch: int) -> None:
    permissions = (
        PermissionFacts((), AT, None, None),
        PermissionFacts(("documents:view", "é"), AT, AT + timedelta(days=1), AT),
    )
    stored = Facts(
        replace(
            CLIENT,
            id=2**62,
            scopes=(),
            blocked_at=AT,
            expires_at=AT,
            intermediary=IntermediaryFacts(is_active=False, active_until=AT),
            token_binding=TokenBinding.DPOP,
            allowed_permissions=("documents:view",),
            has_allowed_taxpayers=True,
            only_on_behalf=True,
        ),
        replace(
            SECRET,
            revoked_at=AT,
            public_jwk="{}",
            allowed_networks=("192.0.2.0/24", "2001:db8::/32"),
            is_certificate=True,
        ),
        replace(REPRESENTED, permissions=permissions, is_allowed=False),
        epoch,
        StatusFacts(5, 6, ("InvoicingAPI",), ("documents:view",)),
    )
    for each in (
        stored,
        replace(stored, represented=replace(REPRESENTED, is_active=None, permissions=())),
        replace(stored, represented=None, client=replace(CLIENT, intermediary=None)),
    ):
        facts.store(QUERY, each)
        assert facts.find(QUERY) == each
    # A value that is its default would not be missed: give each new one another here.
    assert stored.represented is not None
    for part in (stored.client, stored.credential, stored.represented):
        assert [f.name for f in fields(part) if getattr(part, f.name) == f.default] == []


# --- Bounds ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("scopes", [("InvoicingAPI",), tuple(f"Scope{n:04}" for n in range(400))])
def test_a_full_file_is_emptied_and_goes_on(
    folder: Path, scopes: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "taxpayers.facts")
    facts = facts_in(folder, max_bytes=MIB)
    known = replace(FACTS, client=replace(CLIENT, scopes=scopes))
    found = 0
    for n in range(20_000 if len(scopes) == 1 else 2_000):
        query = replace(QUERY, lookup=hash_secret(str(n)))
        facts.store(query, known)
        found += facts.find(query) == known
    assert found > 0.95 * n
    assert {r.message for r in caplog.records} == {"local facts are full: starting again with none"}
    assert sum(file.stat().st_size for file in folder.rglob("data.mdb")) <= MIB


# --- Who can read it ------------------------------------------------------------------------------
def test_only_its_owner_can_read_it(folder: Path) -> None:
    before = os.umask(0)
    try:
        facts_in(folder).store(QUERY, FACTS)
    finally:
        os.umask(before)
    (inner,) = folder.iterdir()
    files = list(inner.iterdir())
    assert {file.name for file in files} == {"data.mdb", "lock.mdb"}
    assert inner.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_the_file_holds_no_id_no_secret_and_no_hash_of_one(folder: Path) -> None:
    client_id, secret = new_client_id("test"), new_client_secret("test")
    query = FactsQuery(client_id, hash_secret(secret), OTHER)
    facts = facts_in(folder)
    facts.store(query, replace(FACTS, client=replace(CLIENT, client_id=client_id)))
    content = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"InvoicingAPI" in content  # it is there, so that this test can be wrong
    lookup = query.lookup
    digest = bytes.fromhex(lookup.rpartition("$")[2])
    assert len(digest) >= 32
    for hidden in (client_id, secret, lookup, lookup.rpartition("$")[2]):
        assert hidden.encode() not in content
        assert hidden[8:24].encode() not in content
    assert digest not in content
    found = facts.find(query)
    assert found is not None
    assert found.client.client_id == client_id


@pytest.mark.postgresql
@pytest.mark.django_db
def test_the_key_is_that_of_the_service(settings: Settings) -> None:
    settings.SECRET_KEY = "one"
    this_node().local_facts.store(QUERY, FACTS)
    assert elsewhere(find_with_secret_key, "another") is None
    assert elsewhere(find_with_secret_key, "one") == FACTS


def find_with_secret_key(secret_key: str) -> Facts | None:
    from django.conf import settings

    settings.SECRET_KEY = secret_key
    this_node.cache_clear()
    return this_node().local_facts.find(QUERY)


# --- Processes ------------------------------------------------------------------------------------
_opened: list[SharedFacts] = []  # by the first process that uses it, and then its forks


def open_and_find(folder: Path, query: FactsQuery = QUERY) -> Facts | None:
    if not _opened:
        _opened.append(facts_in(folder))
    return _opened[0].find(query)


def store_and_find(folder: Path, query: FactsQuery = QUERY, facts: Facts = FACTS) -> Facts | None:
    open_and_find(folder)
    _opened[0].store(query, facts)
    return open_and_find(folder, query)


@pytest.fixture(autouse=True)
def _nothing_is_open() -> None:
    _opened.clear()


def test_all_processes_of_a_node_share_what_they_know(folder: Path) -> None:
    store_and_find(folder)  # opened before the fork, and used after it on both sides
    other = replace(QUERY, on_behalf_of=OTHER)
    first, second = replace(FACTS, epoch=8), replace(FACTS, epoch=9)
    with another_process() as process:
        assert process.submit(open_and_find, folder).result(30) == FACTS
        assert process.submit(store_and_find, folder, other, first).result(30) == first
        assert open_and_find(folder, other) == first
        store_and_find(folder, other, second)
        assert process.submit(open_and_find, folder, other).result(30) == second


def test_each_start_of_the_machine_has_its_own_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot_id = tmp_path / "boot_id"
    monkeypatch.setattr(local, "_BOOT_ID", boot_id)
    boot_id.write_text("first\n")
    facts_in(folder).store(QUERY, FACTS)
    assert elsewhere(open_and_find, folder) == FACTS
    boot_id.write_text("second\n")
    assert elsewhere(open_and_find, folder) is None
    assert [path.name for path in folder.iterdir()] == [f"{local._FORMAT}-second"]


def test_facts_with_another_meaning_are_in_another_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts_in(folder).store(QUERY, FACTS)
    monkeypatch.setattr(local, "_FORMAT", f"{local._FORMAT}+")
    assert elsewhere(open_and_find, folder) is None
    (path,) = folder.iterdir()
    assert path.name.startswith(f"{local._FORMAT}-")


def test_a_process_that_was_killed_takes_no_place_of_a_reader(folder: Path) -> None:
    store_and_find(folder)  # this process has the file open all the time
    killed = multiprocessing.get_context("fork").Process(target=die_reading, args=(folder,))
    killed.start()
    killed.join(30)
    assert killed.exitcode == -signal.SIGKILL
    readers = _opened[0]._environment().readers
    assert str(killed.pid) in readers()
    assert elsewhere(open_and_find, folder) == FACTS
    assert str(killed.pid) not in readers()


def die_reading(folder: Path) -> None:
    open_and_find(folder)
    environment = _opened[0]._environment()
    with environment.begin():
        # Its own place, not one of the process that it was forked from.
        assert str(os.getpid()) in environment.readers()
        os.kill(os.getpid(), signal.SIGKILL)


# --- A cache that may be lost ---------------------------------------------------------------------
UNREADABLE = ("local facts cannot be read", True)  # with its cause


def test_it_can_be_deleted_while_processes_use_it(facts: SharedFacts, folder: Path) -> None:
    facts.store(QUERY, FACTS)
    shutil.rmtree(folder)
    other = replace(QUERY, on_behalf_of=OTHER)
    facts.store(other, FACTS)
    assert (facts.find(QUERY), facts.find(other)) == (FACTS, FACTS)
    assert elsewhere(open_and_find, folder) is None  # a process that starts then has its own
    assert elsewhere(store_and_find, folder) == FACTS


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff", bytes(64), b"nonsense", b"\x80", b"\x81\xa5epoch\x07", b"\xc0", b"\x94\x01"],
)
def test_a_value_that_is_no_facts_is_a_miss_and_is_replaced(
    facts: SharedFacts, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    facts.store(QUERY, FACTS)
    with facts._environment().begin(write=True) as transaction:
        transaction.put(facts._name(QUERY), value)
    assert facts.find(QUERY) is None
    assert [(r.message, bool(r.exc_info)) for r in caplog.records] == [UNREADABLE]
    facts.store(QUERY, FACTS)
    assert facts.find(QUERY) == FACTS


# What is in the way: its place beside the folder of the file, and its content; None: a folder.
SPOILED: dict[str, tuple[str, bytes | None]] = {
    "garbage": ("data.mdb", bytes(range(256)) * 256),
    "cut off": ("data.mdb", bytes(100)),
    "a folder for the file": ("data.mdb", None),
    "a file for the folder": (".", b""),
    "a file for the outer folder": ("..", b""),
}


def spoil(folder: Path, what: str) -> None:
    if what not in SPOILED:
        folder.parent.symlink_to("/proc/self/nowhere")
        return
    name, content = SPOILED[what]
    place = Path(os.path.normpath(folder / name))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if content is None else place.write_bytes(content)


@pytest.mark.parametrize("what", [*SPOILED, "not writable"])
def test_a_file_that_cannot_be_used_is_a_miss_and_no_error(
    folder: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(folder / f"{local._FORMAT}-{local._BOOT_ID.read_text().strip()}", what)
    facts = facts_in(folder)
    for _ in range(2):
        assert facts.find(QUERY) is None
        facts.store(QUERY, FACTS)
    logged = [(record.message, bool(record.exc_info)) for record in caplog.records]
    assert logged == [UNREADABLE, ("local facts cannot be stored", True)] * 2


def test_its_folders_are_made_where_there_are_none(tmp_path: Path) -> None:
    assert elsewhere(store_and_find, tmp_path / "var" / "local-facts") == FACTS


def test_another_file_in_its_folder_does_no_harm(folder: Path) -> None:
    folder.mkdir()
    (folder / "README").touch()
    assert elsewhere(store_and_find, folder) == FACTS
