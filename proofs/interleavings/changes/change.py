"""What a change of the registry is in a run, and what it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

from proofs.interleavings.logins.login import Asked
from proofs.interleavings.oracle.registry import Registry
from proofs.interleavings.world import Credentials
from taxpayers.models import GrantedPermission, PermissionRequest, SystemUser, Taxpayer
from taxpayers.services import Author

AUTHOR = Author("officer")
_Choice = TypeVar("_Choice")
_Model = TypeVar("_Model", bound=Model)
_MOSTLY = 0.7


class NothingToChange(Exception):
    """No row is in the state that this change begins with."""


@dataclass(frozen=True, slots=True)
class Context:
    """For one change: its random numbers, the registry as it was committed, and the time.

    `latest` are the latest requests: a change that concerns them can be missed. `connections` are
    those that were asked for, as they were then. `at` is a moment in the past that no other change
    has. Queries use Django's present connection.
    """

    rng: Random
    registry: Registry
    credentials: Credentials
    latest: Sequence[Asked]
    connections: list[PermissionRequest]
    now: datetime
    at: datetime

    @property
    def why(self) -> dict[str, Any]:
        return self.who | {"reason": "random"}

    @property
    def who(self) -> dict[str, Any]:
        return {"by": AUTHOR, "at": self.at}

    def choose(self, rows: Sequence[_Choice]) -> _Choice:
        if not rows:
            raise NothingToChange
        return self.rng.choice(rows)

    def one(self, rows: QuerySet[_Model]) -> _Model:
        """Any of these, as this session sees them."""
        return self.choose([*rows.order_by("pk")])

    def choose_mostly(self, rows: Sequence[_Choice], likely: Callable[[_Choice], bool]) -> _Choice:
        """Mostly one of those that are likely to concern one of the latest requests."""
        chosen = [row for row in rows if likely(row)]
        return self.choose(chosen if chosen and self.rng.random() < _MOSTLY else rows)

    def pair(self) -> tuple[int, int]:
        """An intermediary and a taxpayer that granted it nothing, mostly such as was asked for."""
        granted = {
            (row.intermediary_id, row.taxpayer_id) for row in self.registry.granted_permissions
        }
        pairs = [
            (role.id, taxpayer.id)
            for role in self.registry.intermediaries
            for taxpayer in self.registry.taxpayers
            if (role.id, taxpayer.id) not in granted and role.taxpayer_id != taxpayer.id
        ]
        wanted = self.wanted()
        return self.choose_mostly(pairs, lambda pair: pair in wanted)

    def permission(self) -> GrantedPermission:
        """A granted one, mostly one under which a client has just asked for a token."""
        wanted = self.wanted()
        return self.choose_mostly(
            self.registry.granted_permissions,
            lambda row: (row.intermediary_id, row.taxpayer_id) in wanted,
        )

    def code(self) -> Any:
        """One of a permission, mostly of such a one."""
        permission = self.permission().id
        return self.choose_mostly(
            self.registry.granted_permission_codes,
            lambda row: row.grantedpermission_id == permission,
        )

    def asking(self) -> set[int]:
        """The taxpayers whose clients have just asked for tokens on behalf of others."""
        asking = {asked.client_id for asked in self.latest if asked.on_behalf_of}
        return {row.taxpayer_id for row in self.registry.system_users if row.client_id in asking}

    def wanted(self) -> set[tuple[int, int]]:
        """Which intermediary has just asked for a token on behalf of which taxpayer."""
        ids = {row.identifier: row.id for row in self.registry.taxpayers}
        owners = {row.client_id: row.taxpayer_id for row in self.registry.system_users}
        roles = {row.taxpayer_id: row.id for row in self.registry.intermediaries}
        pairs = {
            (roles.get(owners.get(asked.client_id, 0), 0), ids.get(asked.on_behalf_of, 0))
            for asked in self.latest
            if asked.on_behalf_of is not None
        }
        return {pair for pair in pairs if all(pair)}

    def end(self) -> datetime | None:
        """A last moment: mostly far away or none, else passed or soon."""
        chosen = self.rng.random()
        if chosen < 0.6:
            return None if chosen < 0.3 else self.far()
        if chosen < 0.8:
            return self.soon()
        return self.now - timedelta(seconds=self.rng.randrange(1, 500_000))

    def far(self) -> datetime:
        return self.now + timedelta(days=1000, seconds=self.rng.randrange(10_000))

    def soon(self) -> datetime:
        return self.now + timedelta(milliseconds=self.rng.randrange(1, 60_000))

    def client(self) -> SystemUser:
        return self.choose(self.registry.system_users)

    def taxpayer(self) -> Taxpayer:
        return self.choose(self.registry.taxpayers)

    def some(self, rows: Sequence[Any], share: float) -> list[int]:
        return [row.id for row in rows if self.rng.random() < share]

    def update(self, table: str, *ids: int, **columns: Any) -> None:
        new = ", ".join(f"{name} = %s" for name in columns)
        self.execute(f"UPDATE {table} SET {new} WHERE id = ANY(%s)", *columns.values(), [*ids])

    def delete(self, table: str, *ids: int, by: str = "id") -> None:
        self.execute(f"DELETE FROM {table} WHERE {by} = ANY(%s)", [*ids])

    def execute(self, sql: str, *parameters: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)


Making = Callable[[Context], None]


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change, and how often it is made."""

    make: Making
    weight: float
    is_counter_changed: bool = False
    is_held: bool = True  # whether its transaction may stay open for some steps

    @property
    def name(self) -> str:
        return self.make.__name__


class Changes(list[Change]):
    def add(self, *, weight: float = 4, **how: bool) -> Callable[[Making], Making]:
        """Decorates the function that makes a change; `how` are more fields of it."""

        def decorate(make: Making) -> Making:
            self.append(Change(make, weight, **how))
            return make

        return decorate
