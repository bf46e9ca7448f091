"""Random changes of a small registry, each by a service at its own moment of the past."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from taxpayers.services import Author, ServiceError

TAXPAYERS = tuple(TaxpayerId(f"C100000000{number}") for number in range(4))
SCOPES = {name: {"description": "d", "audience": name} for name in ("InvoicingAPI", "ReportingAPI")}
DAY = timedelta(days=1)


@dataclass
class Registrar:
    rng: Random
    at: datetime
    made: set[str] = field(default_factory=set)

    def change(self) -> str | None:
        """The name of the change; None if the service refused it."""
        self.at += self.rng.choice((timedelta(0), timedelta(microseconds=1), DAY / 3, 4 * DAY))
        name = self.rng.choice([*CHANGES, *OFTEN])
        try:
            CHANGES[name](self)
        except (ServiceError, IndexError):  # IndexError: there is no record to change yet
            return None
        self.made.add(name)
        return name

    @property
    def by(self) -> dict[str, Any]:
        return {"by": Author(self.rng.choice(("aminah", "kumar"))), "at": self.at}

    @property
    def why(self) -> dict[str, Any]:
        return {**self.by, "reason": f"reason {self.rng.randrange(100)}"}

    def any(self, model: Any) -> Any:
        """A record of this kind. Raises IndexError if there is none."""
        return self.rng.choice(list(model.objects.order_by("pk")))

    def end(self) -> datetime | None:
        return self.rng.choice((None, self.at + DAY, self.at + 30 * DAY))

    def some(self, values: Any) -> list[Any]:
        return self.rng.sample(list(values), self.rng.randint(1, 2))


def _codes() -> Any:
    return PermissionCode.objects.order_by("pk").values_list("pk", flat=True)


def _grant(w: Registrar) -> None:
    pair = {"taxpayer": w.any(Taxpayer), "intermediary": w.any(Intermediary)}
    begins = w.at + w.rng.choice((-5, 0, 3)) * DAY
    until = w.rng.choice((None, begins + 20 * DAY))
    codes = w.some(_codes())
    services.grant_permission(**pair, codes=codes, valid_from=begins, valid_until=until, **w.by)


def _revoke_some_codes(w: Registrar) -> None:
    pair = w.any(GrantedPermission)
    codes = [code.pk for code in pair.codes.order_by("pk")[:1]]
    services.revoke_codes(
        taxpayer=pair.taxpayer, intermediary=pair.intermediary, codes=codes, **w.why
    )


def _register_user(w: Registrar) -> None:
    name, scopes = f"ERP {w.rng.randrange(3)}", w.some(SCOPES)
    ends: dict[str, Any] = {"expires_at": w.end(), "credentials_expire_at": w.end()}
    services.register_system_user(
        reason="a test", taxpayer=w.any(Taxpayer), name=name, scopes=scopes, **ends, **w.by
    )


def _change_user(w: Registrar) -> None:
    values: dict[str, Any] = {
        "name": f"ERP {w.rng.randrange(9)}",
        "scopes": w.some(SCOPES),
        "logins_per_minute": w.rng.randrange(60),
    }
    chosen = {name: values[name] for name in w.some(values)}
    services.change_system_user(system_user=w.any(SystemUser), **chosen, **w.why)


def _limit_user(w: Registrar) -> None:
    permissions = w.rng.choice(([], w.some(_codes())))
    taxpayers = w.rng.choice(([], [w.any(Taxpayer).identifier]))
    services.limit_system_user(
        system_user=w.any(SystemUser),
        permissions=permissions,
        taxpayers=taxpayers,
        only_on_behalf=w.rng.choice((None, False, True)),
        **w.why,
    )


def _ending(w: Registrar) -> Any:
    return w.any(w.rng.choice((SystemUser, Intermediary, GrantedPermission, GrantedPermission)))


def _register(w: Registrar) -> None:
    identifier = w.rng.choice(TAXPAYERS)
    services.register_taxpayer(taxpayer=identifier, name=f"Company {identifier}", **w.by)


NETWORKS: tuple[list[str], ...] = ([], ["192.0.2.0/24"], ["192.0.2.7", "2001:db8::/32"])
CHANGES: dict[str, Callable[[Registrar], object]] = {
    "register": _register,
    "rename": lambda w: services.rename_taxpayer(
        taxpayer=w.any(Taxpayer), name=f"Name {w.rng.randrange(9)}", **w.why
    ),
    "activate": lambda w: services.set_taxpayer_active(
        taxpayer=w.any(Taxpayer), is_active=w.rng.random() < 0.6, **w.why
    ),
    "become an intermediary": lambda w: services.register_intermediary(
        taxpayer=w.any(Taxpayer), until=w.end(), **w.by
    ),
    "change the role": lambda w: services.set_intermediary_active(
        intermediary=w.any(Intermediary), is_active=w.rng.random() < 0.6, **w.why
    ),
    "grant": _grant,
    "revoke": lambda w: services.revoke_permission(permission=w.any(GrantedPermission), **w.why),
    "revoke some codes": _revoke_some_codes,
    "register a user": _register_user,
    "change a user": _change_user,
    "set the end of a user": lambda w: services.extend_system_user(
        system_user=w.any(SystemUser), expires_at=w.end(), **w.why
    ),
    "block": lambda w: services.block_system_user(system_user=w.any(SystemUser), **w.why),
    "unblock": lambda w: services.unblock_system_user(system_user=w.any(SystemUser), **w.why),
    "limit a user": _limit_user,
    "set networks": lambda w: services.change_credential(
        credential=w.any(Credential), allowed_networks=w.rng.choice(NETWORKS), **w.why
    ),
    "rotate": lambda w: services.issue_secret(
        reason="a test",
        system_user=w.any(SystemUser),
        expires_at=w.end(),
        retire_old_at=w.end(),
        **w.by,
    ),
    "retire": lambda w: services.retire_credential(
        credential=w.any(Credential), last_moment=w.at + 2 * DAY, **w.why
    ),
    "revoke a secret": lambda w: services.revoke_credential(credential=w.any(Credential), **w.why),
    "later": lambda w: services.extend(
        record=_ending(w), until=w.rng.choice((None, w.at + 60 * DAY)), **w.why
    ),
    "earlier": lambda w: services.end_earlier(record=_ending(w), until=w.at + DAY, **w.why),
}
OFTEN = ("activate", "grant", "register a user", "limit a user")
