"""What staff can do about a refused login: one table from each reason to the tasks that cure it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model
from django.http import HttpRequest

from identity.staff.accounts.roles import ROLES
from identity.staff.framework.lists import Text
from identity.staff.framework.records import task_named
from identity.staff.framework.tasks import Button
from identity.staff.logins.refused.involved import Involved
from taxpayers import actions
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.rules import RegistryReason
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.intermediaries import ACTIVATE_INTERMEDIARY
from tokens.refusals.table import ProtocolReason


class Target(NamedTuple):
    """Where the task is done: on a record, or (None) with initial values for its form."""

    model: type[Model]
    record: Model | None = None
    initial: Mapping[str, Any] = {}


class Cure(NamedTuple):
    """A task that would cure the login."""

    task: str  # its name: most have that of their action
    target: Callable[[Involved], Target | None]  # None: it would not cure this login


def _on(named: Callable[[Involved], Model | None]) -> Callable[[Involved], Target | None]:
    """On this record, if there is one."""

    def target(involved: Involved) -> Target | None:
        record = named(involved)
        return Target(type(record), record) if record else None

    return target


_on_system_user = _on(lambda one: one.system_user)


def _on_client_with(kind: CredentialKind) -> Callable[[Involved], Target | None]:
    def client(involved: Involved) -> Model | None:
        user = involved.system_user
        return user if user and user.credential_kind == kind else None

    return _on(client)


def _on_secret(involved: Involved) -> Target | None:
    user, secret = involved.system_user, involved.secret
    if user is None or secret is None:
        return None
    return Target(SystemUser, user, {"secret": secret.pk})


def _as_intermediary(involved: Involved) -> Target | None:
    new = Target(Intermediary, initial={"taxpayer": involved.event.actor})
    return None if involved.role else new


def _new_represented(involved: Involved) -> Target | None:
    new = Target(Taxpayer, initial={"identifier": involved.event.subject})
    return None if involved.represented else new


def _inactive_represented(involved: Involved) -> Taxpayer | None:
    represented = involved.represented
    return represented if represented and not represented.is_active else None


def _permission(involved: Involved) -> Target | None:
    """The permission once more, with the codes that it had."""
    if involved.represented is None or involved.role is None:
        return None
    initial = {
        "taxpayer": involved.event.subject,
        "intermediary": involved.event.actor,
        "codes": " ".join(codes_of(involved.permission)) if involved.permission else "",
    }
    return Target(GrantedPermission, initial=initial)


_NEW_SECRET = Cure(actions.ROTATE_SECRET.name, _on_client_with(CredentialKind.SECRET))
_NEW_CREDENTIAL = (
    _NEW_SECRET,
    Cure(actions.REGISTER_CLIENT_KEY.name, _on_client_with(CredentialKind.KEY)),
    Cure(actions.REGISTER_CLIENT_CERTIFICATE.name, _on_client_with(CredentialKind.CERTIFICATE)),
)
_BINDING = Cure("bind_tokens", _on_system_user)  # if it was bound before its ERP system could
_LIMIT = Cure(actions.LIMIT_SYSTEM_USER.name, _on_system_user)
_GRANT = Cure(actions.GRANT_PERMISSION.name, _permission)

# None for a reason that staff cannot cure.
CURES: Mapping[str, tuple[Cure, ...]] = {
    ProtocolReason.INSECURE_TRANSPORT: (_NEW_SECRET,),  # the old one may have been read on the way
    ProtocolReason.MALFORMED_CREDENTIALS: _NEW_CREDENTIAL,
    ProtocolReason.INVALID_CREDENTIALS: _NEW_CREDENTIAL,
    RegistryReason.SECRET_EXPIRED: _NEW_CREDENTIAL,
    RegistryReason.SECRET_REVOKED: _NEW_CREDENTIAL,
    RegistryReason.DPOP_PROOF_MISSING: (_BINDING,),
    RegistryReason.CERTIFICATE_MISSING: (_BINDING,),
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: (Cure(actions.CHANGE_SECRET.name, _on_secret),),
    ProtocolReason.RATE_LIMITED: (Cure(actions.CHANGE_SYSTEM_USER.name, _on_system_user),),
    RegistryReason.SYSTEM_USER_BLOCKED: (Cure(actions.UNBLOCK_SYSTEM_USER.name, _on_system_user),),
    RegistryReason.SYSTEM_USER_EXPIRED: (Cure(actions.EXTEND_SYSTEM_USER.name, _on_system_user),),
    RegistryReason.TAXPAYER_INACTIVE: (
        Cure(actions.ACTIVATE_TAXPAYER.name, _on(lambda one: one.own_taxpayer)),
    ),
    RegistryReason.NOT_AN_INTERMEDIARY: (
        Cure(actions.REGISTER_INTERMEDIARY.name, _as_intermediary),
    ),
    RegistryReason.INTERMEDIARY_INACTIVE: (
        Cure(ACTIVATE_INTERMEDIARY.name, _on(lambda one: one.role)),
    ),
    RegistryReason.OWN_TAXPAYER_NOT_ALLOWED: (_LIMIT,),
    RegistryReason.TAXPAYER_NOT_ALLOWED: (_LIMIT,),
    RegistryReason.NO_PERMISSION: (
        Cure(actions.REGISTER_TAXPAYER.name, _new_represented),
        Cure(actions.ACTIVATE_TAXPAYER.name, _on(_inactive_represented)),
        _GRANT,
    ),
    RegistryReason.PERMISSION_NOT_YET_VALID: (_GRANT,),
    RegistryReason.PERMISSION_EXPIRED: (_GRANT,),
    RegistryReason.PERMISSION_REVOKED: (_GRANT,),
    RegistryReason.PERMISSIONS_NOT_ALLOWED: (_LIMIT,),
    RegistryReason.INVALID_SCOPE: (
        # An unknown scope is a fault of the request; a known one may be given to the client.
        Cure(
            actions.CHANGE_SYSTEM_USER.name,
            _on(lambda one: None if one.event.detail else one.system_user),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class OfferedCures:
    """The tasks that this person may do; those not possible now, and why; and those of others."""

    buttons: list[Button] = field(default_factory=list)
    not_now: list[tuple[Text, Text]] = field(default_factory=list)
    for_others: list[tuple[Text, list[str]]] = field(default_factory=list)  # with their roles

    def __bool__(self) -> bool:
        return bool(self.buttons or self.not_now or self.for_others)


def offered_cures(
    request: HttpRequest, reason: str, involved: Involved, at: datetime
) -> OfferedCures:
    """The tasks that would cure a login with this reason; none for one that staff cannot cure."""
    offered = OfferedCures()
    for cure in CURES.get(reason, ()):
        target = cure.target(involved)
        if target is None:
            continue
        task = task_named(target.model, cure.task)
        why = task.refusal(target.record, at)
        if not task.is_allowed(request):
            if not why:
                having = [name for name, r in ROLES.items() if task.permission in r.permissions]
                offered.for_others.append((task.title, having))
        elif why:
            offered.not_now.append((task.title, why))
        else:
            url = task.url(target.record, **target.initial)
            offered.buttons.append(Button(task.title, url, task.variant))
    return offered
