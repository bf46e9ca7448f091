"""The records that a login concerns, as they are now."""

from dataclasses import dataclass

from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from tokens.models import LoginEvent


@dataclass(frozen=True, slots=True)
class Involved:
    """Each is None if there is no such record, or if the login did not ask for it.

    `system_user`: the client, or the one with the ID that was sent with a wrong secret. `role`: its
    taxpayer as an intermediary. `represented`: the taxpayer that `onbehalfof` named. `permission`:
    the newest one that `represented` granted to `role`.
    """

    event: LoginEvent
    secret: Credential | None = None
    system_user: SystemUser | None = None
    role: Intermediary | None = None
    represented: Taxpayer | None = None
    permission: GrantedPermission | None = None

    @property
    def own_taxpayer(self) -> Taxpayer | None:
        """The taxpayer of the system user."""
        return self.system_user.taxpayer if self.system_user else None


def involved_in(event: LoginEvent) -> Involved:
    """The records of this login, in a few queries by key."""
    user = _system_user(event)
    secret = Credential.objects.filter(pk=event.secret_id).first() if event.secret_id else None
    if user is None or not event.is_on_behalf:
        return Involved(event, secret, user)
    role: Intermediary | None = getattr(user.taxpayer, "intermediary", None)
    named = subject_of(event)
    represented = Taxpayer.objects.filter(tin=named.tin, rob=named.rob).first()
    permission = None
    if role is not None and represented is not None:
        pair = GrantedPermission.objects.filter(taxpayer=represented, intermediary=role)
        newest = pair.select_related("taxpayer", "intermediary__taxpayer").order_by("-pk")
        permission = newest.prefetch_related("codes").first()
    return Involved(event, secret, user, role, represented, permission)


def subject_of(event: LoginEvent) -> TaxpayerId:
    """The taxpayer that the login represents, from the notation in which it is stored."""
    tin, _colon, rob = event.subject.partition(":")
    return TaxpayerId(tin, rob)


def _system_user(event: LoginEvent) -> SystemUser | None:
    users = SystemUser.objects.select_related("taxpayer__intermediary")
    if event.system_user_id is not None:
        return users.filter(pk=event.system_user_id).first()
    return users.filter(client_id=event.client_id).first() if event.client_id else None
