"""The facts that this node has met, in a file that all its processes share (LMDB).

A cache: bounded, readable by its owner only, and safe to delete. It need not be up to date, because
no login is recorded unless the epoch of its facts is the present one.
"""

import hashlib
import logging
import os
import shutil
from pathlib import Path
from typing import Protocol

import lmdb
import msgspec
from msgspec.structs import replace

from taxpayers.facts.values import Facts, FactsQuery

logger = logging.getLogger("taxpayers.facts")

# Facts of another shape are not read; another number where only their meaning changes.
_SHAPE = hashlib.sha256(msgspec.json.encode(msgspec.json.schema(Facts))).hexdigest()[:8]
_FORMAT = f"4-{_SHAPE}"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MAX_READERS = 1024


class LocalFacts(Protocol):
    """What a node knows of the clients that it has met."""

    def find(self, query: FactsQuery) -> Facts | None:
        """None if the node does not know this id with this secret and this taxpayer."""

    def store(self, query: FactsQuery, facts: Facts) -> None:
        """Replaces what was known."""


class SharedFacts:
    """Facts in one memory-mapped file of the node.

    Nothing waits for the disk. After a crash of the machine the file may be damaged, so each start
    of the machine has its own. `key` makes the names of the entries; the file holds no id of a
    client, no secret and no hash of one.
    """

    def __init__(self, folder: Path, *, max_bytes: int, key: bytes) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._key = hashlib.blake2b(key, digest_size=32).digest()
        self._opened: tuple[int, lmdb.Environment] | None = None  # and by which process

    def find(self, query: FactsQuery) -> Facts | None:
        try:
            with self._environment().begin(buffers=True) as transaction:
                stored = transaction.get(self._name(query))
                facts = None if stored is None else _decode(stored)
        except (lmdb.Error, OSError, msgspec.DecodeError):
            logger.warning("local facts cannot be read", exc_info=True)
            return None
        return None if facts is None else _with_client_id(facts, query.client_id)

    def store(self, query: FactsQuery, facts: Facts) -> None:
        name, encoded = self._name(query), _encode(_with_client_id(facts, ""))
        try:
            self._put(name, encoded)
        except lmdb.MapFullError:
            logger.info("local facts are full: starting again with none")
            self._empty()
        except (lmdb.Error, OSError):
            logger.warning("local facts cannot be stored", exc_info=True)

    def _put(self, name: bytes, encoded: bytes) -> None:
        with self._environment().begin(write=True) as transaction:
            transaction.put(name, encoded)

    def _empty(self) -> None:
        try:
            environment = self._environment()
            with environment.begin(write=True) as transaction:
                transaction.drop(environment.open_db(None, txn=transaction), delete=False)
        except lmdb.Error:
            logger.warning("local facts cannot be emptied", exc_info=True)

    def _name(self, query: FactsQuery) -> bytes:
        text = f"{query.client_id}\n{query.lookup}\n{query.on_behalf_of or ''}"
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=16).digest()

    def _environment(self) -> lmdb.Environment:
        # An environment must not be used by a process that was forked after it was opened.
        pid = os.getpid()
        if self._opened is None or self._opened[0] != pid:
            if self._opened is not None:
                self._opened[1].close()  # in this process only; LMDB opens no file twice
            self._opened = (pid, self._open())
        return self._opened[1]

    def _open(self) -> lmdb.Environment:
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else "unknown"
        path = self._folder / f"{_FORMAT}-{boot}"
        for folder in (self._folder, path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._folder.iterdir():
            if other != path:
                shutil.rmtree(other, ignore_errors=True)
        environment = lmdb.open(
            str(path),
            map_size=self._max_bytes,
            mode=0o600,
            sync=False,
            metasync=False,
            readahead=False,
            max_readers=_MAX_READERS,
        )
        environment.reader_check()  # frees the places of processes that were killed
        return environment


def _with_client_id(facts: Facts, client_id: str) -> Facts:
    return replace(facts, client=replace(facts.client, client_id=client_id))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Facts).decode
