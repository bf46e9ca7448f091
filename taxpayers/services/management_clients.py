"""Who may change a client of the management API: operators (contract 4, "Duties").

Who can become such a client, or make another one, has its duties. So its scopes, what it logs in
with and its limits belong to no role of staff and to no client. Staff may stop it.
"""

from collections.abc import Collection

from django.utils.translation import gettext as _

from taxpayers.duties import MANAGEMENT_SCOPES, WHOLE, are_for_management
from taxpayers.models import SystemUser, Taxpayer
from taxpayers.services.history import Author, AuthorKind, lock_for_update
from taxpayers.validation import ServiceError


class OnlyOperators(ServiceError):
    """Only a command of the operators does this."""


def why_only_operators(system_user: SystemUser) -> str:
    """Why only operators change this client; empty for a client that staff may change."""
    if not are_for_management(system_user.scopes):
        return ""
    return _(
        "{client_id} may use the management API, so only the operators of this service change it"
        " and what it logs in with: manage.py change_system_user, rotate_secret and the like. Staff"
        " can block it, and revoke what it logs in with or let it end earlier."
    ).format(client_id=system_user.client_id)


def check_scopes(scopes: Collection[str], by: Author | None) -> None:
    """Raises OnlyOperators if this author may not give them. None: a file, which never may."""
    given = sorted(MANAGEMENT_SCOPES.intersection(scopes))
    if given and (by is None or by.kind is not AuthorKind.OPERATOR):
        raise OnlyOperators(
            "Only the operators of this service give a system user the scope {scope}, which"
            " opens the management API: manage.py issue_credentials, or change_system_user.",
            scope=given[0],
        )


def check_taxpayer(taxpayer: Taxpayer, by: Author) -> None:
    """Raises OnlyOperators if this author must not stop or start the clients of this taxpayer.

    A client stops no other one of the management API, nor undoes that staff have stopped it.
    """
    if by.kind is not AuthorKind.CLIENT:
        return
    scopes = taxpayer.system_users.filter(scopes__contains=WHOLE).values_list("scopes", flat=True)
    if any(map(are_for_management, scopes)):
        english = (  # programs read it
            f"{taxpayer.identifier} has a system user that may use the management API, so no client"
            " activates or deactivates it. Staff do, or manage.py deactivate_taxpayer."
        )
        raise OnlyOperators(english)


def lock_to_change(system_user: SystemUser, by: Author) -> SystemUser:
    """Lock it for a change that could help to log in as it. Raises OnlyOperators."""
    row = lock_for_update(system_user)
    if by.kind is not AuthorKind.OPERATOR and (reason := why_only_operators(row)):
        raise OnlyOperators(reason)
    return row


def lock_to_stop(system_user: SystemUser, by: Author) -> SystemUser:
    """Lock it for a change that takes something away from it.

    Staff may do that to every client, and a client to those that do not use the management API, and
    to itself. Raises OnlyOperators.
    """
    is_other_client = by.client_id not in ("", system_user.client_id)
    return lock_to_change(system_user, by) if is_other_client else lock_for_update(system_user)
