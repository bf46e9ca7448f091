"""Random changes of a small registry, each by a service at its own moment of the past."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from taxpayers.services import (
    Author,
    ServiceError,
    block_system_user,
    change_credential,
    change_system_user,
    end_earlier,
    extend,
    extend_system_user,
    grant_permission,
    issue_secret,
    limit_system_user,
    register_intermediary,
    register_system_user,
    register_taxpayer,
    rename_taxpayer,
    retire_credential,
    revoke_codes,
    revoke_credential,
    revoke_permission,
    set_intermediary_active,
    set_taxpayer_active,
    unblock_system_user,
)

TAXPAYERS = tuple(TaxpayerId(f"C100000000{number}") for number in range(4))
SCOPES = {name: {"description": "d", "audience": name} for name in ("InvoicingAPI", "ReportingAPI")}
DAY = timedelta(days=1)


@dataclass
class Registrar:
    """Makes one random change after the other; the moment moves on, or stays for a while."""

    rng: Random
    at: datetime
    made: set[str] = field(default_factory=set)

    def change(self) -> str | None:
        """The name of the change; None if the service refused it."""
        self.at += self.rng.choice((timedelta(0), timedelta(microseconds=1), DAY / 3, 4 * DAY))
        change = self.rng.choice(CHANGES)
        try:
            change(self)
        except (ServiceError, IndexError):  # IndexError: there is no record to change yet
            return None
        self.made.add(change.__name__)
        return change.__name__

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
        """A last moment in the future, or none."""
        return self.rng.choice((None, self.at + DAY, self.at + 30 * DAY))

    def some(self, values: Any) -> list[Any]:
        return self.rng.sample(list(values), self.rng.randint(1, 2))


def register(w: Registrar) -> None:
    identifier = w.rng.choice(TAXPAYERS)
    register_taxpayer(taxpayer=identifier, name=f"Company {identifier}", **w.by)


def rename(w: Registrar) -> None:
    rename_taxpayer(taxpayer=w.any(Taxpayer), name=f"Name {w.rng.randrange(9)}", **w.why)


def activate(w: Registrar) -> None:
    is_active = w.rng.random() < 0.6
    set_taxpayer_active(taxpayer=w.any(Taxpayer), is_active=is_active, **w.why)


def become_intermediary(w: Registrar) -> None:
    register_intermediary(taxpayer=w.any(Taxpayer), until=w.end(), **w.by)


def change_role(w: Registrar) -> None:
    set_intermediary_active(
        intermediary=w.any(Intermediary), is_active=w.rng.random() < 0.6, until=w.end(), **w.why
    )


def grant(w: Registrar) -> None:
    begins = w.at + w.rng.choice((-5, 0, 3)) * DAY
    grant_permission(
        taxpayer=w.any(Taxpayer),
        intermediary=w.any(Intermediary),
        codes=w.some(PermissionCode.objects.order_by("pk").values_list("pk", flat=True)),
        valid_from=begins,
        valid_until=w.rng.choice((None, begins + 20 * DAY)),
        **w.by,
    )


def revoke(w: Registrar) -> None:
    revoke_permission(permission=w.any(GrantedPermission), **w.why)


def revoke_some_codes(w: Registrar) -> None:
    pair = w.any(GrantedPermission)
    codes = [code.pk for code in pair.codes.order_by("pk")[:1]]
    revoke_codes(taxpayer=pair.taxpayer, intermediary=pair.intermediary, codes=codes, **w.why)


def register_user(w: Registrar) -> None:
    register_system_user(
        taxpayer=w.any(Taxpayer),
        name=f"ERP {w.rng.randrange(3)}",
        scopes=w.some(SCOPES),
        expires_at=w.end(),
        secret_expires_at=w.end(),
        **w.by,
    )


def change_user(w: Registrar) -> None:
    fields = w.some(("name", "scopes", "logins_per_minute"))
    values: dict[str, Any] = {
        "name": f"ERP {w.rng.randrange(9)}",
        "scopes": w.some(SCOPES),
        "logins_per_minute": w.rng.randrange(60),
    }
    chosen = {name: values[name] for name in fields}
    change_system_user(system_user=w.any(SystemUser), **chosen, **w.why)


def limit_user(w: Registrar) -> None:
    codes = PermissionCode.objects.order_by("pk").values_list("pk", flat=True)
    limit_system_user(
        system_user=w.any(SystemUser),
        permissions=w.rng.choice(([], w.some(codes))),
        taxpayers=w.rng.choice(([], [w.any(Taxpayer).identifier])),
        **w.why,
    )


def set_networks_of_secret(w: Registrar) -> None:
    networks = w.rng.choice(([], ["192.0.2.0/24"], ["192.0.2.7", "2001:db8::/32"]))
    change_credential(credential=w.any(Credential), allowed_networks=networks, **w.why)


def set_end_of_user(w: Registrar) -> None:
    extend_system_user(system_user=w.any(SystemUser), expires_at=w.end(), **w.why)


def ending(w: Registrar) -> Any:
    return w.any(w.rng.choice((SystemUser, Intermediary, GrantedPermission, GrantedPermission)))


def later(w: Registrar) -> None:
    extend(record=ending(w), until=w.rng.choice((None, w.at + 60 * DAY)), **w.why)


def earlier(w: Registrar) -> None:
    end_earlier(record=ending(w), until=w.at + DAY, **w.why)


def block(w: Registrar) -> None:
    block_system_user(system_user=w.any(SystemUser), **w.why)


def unblock(w: Registrar) -> None:
    unblock_system_user(system_user=w.any(SystemUser), **w.why)


def rotate(w: Registrar) -> None:
    issue_secret(system_user=w.any(SystemUser), expires_at=w.end(), retire_old_at=w.end(), **w.by)


def retire(w: Registrar) -> None:
    retire_credential(credential=w.any(Credential), last_moment=w.at + 2 * DAY, **w.why)


def revoke_one_secret(w: Registrar) -> None:
    revoke_credential(credential=w.any(Credential), **w.why)


CHANGES: tuple[Callable[[Registrar], None], ...] = (
    *(register, rename, activate, activate, become_intermediary, change_role),
    *(grant, grant, revoke, revoke_some_codes),
    *(register_user, register_user, change_user, set_end_of_user, block, unblock),
    *(
        limit_user,
        limit_user,
        set_networks_of_secret,
        rotate,
        retire,
        revoke_one_secret,
        later,
        earlier,
    ),
)
