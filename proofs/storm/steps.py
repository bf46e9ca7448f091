"""One login by the real steps; the database is replaced by what it would answer."""

from datetime import UTC, datetime
from urllib.parse import urlencode

from taxpayers.facts.values import Facts, FactsQuery
from tests.facts.login_cases import LIVE, NOW, RIGHT, STORED, Memory, Registry, drive
from tests.support.erp import FORM
from tokens.keys import signer
from tokens.keys.ring import Key, KeyRing, generate
from tokens.metrics import ISSUED
from tokens.operations.login import log_in
from tokens.operations.node import Node
from tokens.request.arrival import receive


class _Unchanging(Memory):
    def store(self, query: FactsQuery, facts: Facts) -> None:
        """It stays as it is: who is known to which process, the simulation says."""


class RealLogin:
    """Logs in as a client that the node knows, or as one that it has to read first."""

    def __init__(self) -> None:
        signer._cache._ring = KeyRing((Key("a-kid", "ES256", NOW, {}, generate("ES256")),))
        signer._cache._read_at = datetime.now(UTC)
        signer._cache._is_kept_fresh = True
        self._known, self._unknown = Node(_Unchanging(LIVE)), Node(_Unchanging(None))
        self._body = urlencode(RIGHT).encode()
        self._meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}

    def log_in(self, *, is_known: bool) -> None:
        """Raises AssertionError if there is no token."""
        node = self._known if is_known else self._unknown
        arrival, raw = receive(self._meta, self._body, node.clock.now())
        results = [STORED] if is_known else [Registry(LIVE), STORED]
        _calls, ended = drive(log_in(node, arrival, raw), results)
        assert ended.outcome == ISSUED, ended
