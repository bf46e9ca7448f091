"""What a login event store is given: the event and what it counts against. Pure."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Event(NamedTuple):
    """The row of a login event, in the order of its columns."""

    id: UUID
    at: datetime
    reason: str
    detail: str
    client_id: str
    system_user_id: int | None
    secret_id: int | None
    subject: str
    actor: str
    scope: str
    kid: str
    source_address: str | None
    user_agent: str


class CountedLogin(NamedTuple):
    """An authenticated login, for the counter of its client."""

    system_user_id: int
    secret_id: int
    limit: int
    at: datetime


class FailedLogin(NamedTuple):
    """A failed login: the bucket of its caller and id, and the bucket of its address alone."""

    pair_bucket: int
    address_bucket: int
    at: datetime
