"""One login in progress: what it asks, its steps, and what happened to it."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import jwt
from django.conf import settings

from proofs.interleavings.world import lookup_of
from taxpayers.facts.values import FactsQuery
from taxpayers.identifiers import TaxpayerId
from tests.client_auth.key_erp import JWT_BEARER, KeyPair
from tests.support.erp import FORM
from tokens.calls import Call, Event, Write
from tokens.operations.login import EndedLogin, Steps
from tokens.request.arrival import Arrival, receive
from tokens.request.token_request import GRANT_TYPE, RawTokenRequest

ASSERTION_LIFETIME = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client sends; `scope` is empty for none."""

    client_id: str
    credential: str | KeyPair = field(repr=False)  # a secret, or a key that signs an assertion
    on_behalf_of: TaxpayerId | None
    scope: str
    address: str
    grant_type: str = GRANT_TYPE

    @property
    def query(self) -> FactsQuery:
        return FactsQuery(self.client_id, lookup_of(self.credential), self.on_behalf_of)

    @property
    def is_readable(self) -> bool:
        return self.grant_type == GRANT_TYPE

    @property
    def scopes(self) -> tuple[str, ...] | None:
        return tuple(self.scope.split()) or None

    def received(self, at: datetime) -> tuple[Arrival, RawTokenRequest]:
        form = {"grant_type": self.grant_type} | ({"scope": self.scope} if self.scope else {})
        form |= self._proof(at)
        meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": self.address}
        if self.on_behalf_of is not None:
            meta["HTTP_ONBEHALFOF"] = str(self.on_behalf_of)
        return receive(meta, urlencode(form).encode(), at)

    def _proof(self, at: datetime) -> dict[str, str]:
        key, client_id = self.credential, self.client_id
        if isinstance(key, str):
            return {"client_id": client_id, "client_secret": key}
        claims: dict[str, Any] = {"iss": client_id, "sub": client_id, "aud": settings.AUTH_URL}
        claims |= {"exp": (at + ASSERTION_LIFETIME).timestamp(), "jti": str(uuid4())}
        signed = jwt.encode(claims, key.private, key.algorithm, {"kid": key.kid})
        return {"client_assertion_type": JWT_BEARER, "client_assertion": signed}


@dataclass(slots=True, eq=False)
class Login:
    number: int
    node: int
    asked: Asked
    query: FactsQuery
    arrival: Arrival
    steps: Steps
    arrived_in: int  # the step of the run
    arrived_at: datetime
    clock_off: timedelta  # of its node
    read_in: int | None = None  # the step in which it read the registry last
    recorded: list[Write] = field(default_factory=list)
    recorded_in: int = 0  # a step, of the last of these
    # Why a 503 would be the right answer, and why a 429.
    may_be_unavailable: str = ""
    may_be_limited: str = ""
    denied: tuple[datetime, str] | None = None  # until when, and from which address
    trace: list[tuple[int, str, Any]] = field(default_factory=list)
    call: Call = field(init=False)  # that it waits for
    ended: EndedLogin | None = None

    def add(self, step: int, what: str, details: Any = "") -> None:
        self.trace.append((step, what, details))

    @property
    def event(self) -> Event | None:
        return self.recorded[-1].event if self.recorded else None

    @property
    def token(self) -> str:
        assert self.ended is not None
        return str(json.loads(self.ended.answer.body)["access_token"])

    @property
    def claims(self) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(self.token, options={"verify_signature": False})
        return claims

    def __str__(self) -> str:
        lines = [f"login {self.number} {self.arrival.id} on node {self.node}: {self.asked}"]
        lines += [f"    step {step}: {what} {details}" for step, what, details in self.trace]
        return "\n".join(lines)
