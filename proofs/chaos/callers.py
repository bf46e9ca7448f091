"""Who logs in during the drill: ERP systems, and callers that may not log in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from urllib.parse import urlencode

from taxpayers.credentials import hash_secret, hint_of, new_client_id, new_client_secret
from taxpayers.models import Credential, SystemUser, Taxpayer
from tests.servers.service import Service
from tests.support.erp import Erp
from tests.support.factories import SystemUserFactory

Manage = Callable[..., Any]

TAXPAYERS, INTERMEDIARY = ("C1000000001", "C1000000002", "C1000000003"), "C2000000001"
PERMISSION = "documents:submit"
CROWD = 1000


class Kind(Enum):
    HONEST = "honest"  # gets a token unless the service is out of order
    BAD = "bad"  # never gets one
    CHANGING = "changing"  # as the registry is at that moment


@dataclass
class Caller:
    name: str
    kind: Kind
    erp: Erp
    on_behalf_of: str = ""
    form: Mapping[str, str] = field(default_factory=dict)  # instead of a right one

    @property
    def body(self) -> str:
        return urlencode(self.form or self.erp.form)

    @property
    def address(self) -> str:
        """A caller that fails does so from another address: its failures are counted there."""
        return "127.0.0.66" if self.kind is Kind.BAD else "127.0.0.2"

    @property
    def pause_seconds(self) -> float:
        return {Kind.HONEST: 0.12, Kind.BAD: 0.5, Kind.CHANGING: 0.2}[self.kind]


@dataclass(frozen=True)
class Population:
    callers: list[Caller]
    crowd: list[Erp]  # system users that no other caller uses

    @property
    def honest(self) -> frozenset[str]:
        return frozenset(one.name for one in self.callers if one.kind is Kind.HONEST)

    @property
    def bad(self) -> list[str]:
        return [one.name for one in self.callers if one.kind is Kind.BAD]


def register(service: Service) -> Population:
    """Registers them by the service's own commands; the crowd by two statements."""
    manage = service.manage

    def issue(tin: str, name: str) -> Erp:
        issued = manage("issue_credentials", tin, "--name", name, "--logins-per-minute", "0")
        return Erp(issued["client_id"], issued["client_secret"])

    for tin in (*TAXPAYERS, INTERMEDIARY):
        manage("register_taxpayer", tin, "--name", f"Taxpayer {tin}")
    manage("register_intermediary", INTERMEDIARY)
    for tin in TAXPAYERS:
        manage(
            *("grant_permission", "--taxpayer", tin),
            *("--intermediary", INTERMEDIARY, "--permission", PERMISSION),
        )
    asked = [(f"ERP {n}", tin, "") for n, tin in enumerate(2 * TAXPAYERS, start=1)]
    asked += [(f"intermediary {n}", INTERMEDIARY, TAXPAYERS[n]) for n in (1, 2)]
    honest = [Caller(name, Kind.HONEST, issue(tin, name), other) for name, tin, other in asked]
    callers = [*honest, *_bad(manage, issue, honest[0].erp)]
    return Population(callers, service.run(_register_crowd))


def _register_crowd() -> list[Erp]:
    taxpayer = Taxpayer.objects.get(tin=TAXPAYERS[0])
    users: list[SystemUser] = SystemUserFactory.build_batch(
        CROWD, taxpayer=taxpayer, logins_per_minute=0
    )
    SystemUser.objects.bulk_create(users)
    erps = [Erp(user.client_id, new_client_secret("test"), user) for user in users]
    at = datetime.now(UTC)
    Credential.objects.bulk_create(
        Credential(
            system_user=erp.registered,
            slot=1,
            lookup=hash_secret(erp.client_secret),
            hint=hint_of(erp.client_secret),
            created_at=at,
            expires_at=at + timedelta(days=1),
        )
        for erp in erps
    )
    return erps


def block(manage: Manage, caller: Caller) -> None:
    manage("block_system_user", caller.erp.client_id, "--reason", "drill")


def _bad(manage: Manage, issue: Callable[[str, str], Erp], victim: Erp) -> list[Caller]:
    stopped = Caller("blocked for good", Kind.BAD, issue(TAXPAYERS[1], "blocked"))
    block(manage, stopped)
    other = issue(TAXPAYERS[1], "other").client_secret
    return [
        stopped,
        Caller("wrong secret", Kind.BAD, Erp(victim.client_id, other)),
        Caller("unknown id", Kind.BAD, Erp(new_client_id("test"), other)),
        Caller("malformed", Kind.BAD, victim, form={**victim.form, "grant_type": "password"}),
    ]
