"""Changes of taxpayers (contract 4)."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from taxpayers.demands import Impossible, checked_name, checked_reason
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Taxpayer
from taxpayers.services.history import Action, Author, Deed, change, locked, remember


@transaction.atomic
def register_taxpayer(*, taxpayer: TaxpayerId, name: str, by: Author, at: datetime) -> Taxpayer:
    """The taxpayer of this identifier, registered now unless it was; safe to repeat.

    Raises Impossible if it is registered under another name.
    """
    name = checked_name(name)
    row, is_new = Taxpayer.objects.get_or_create(
        tin=taxpayer.tin, rob=taxpayer.rob, defaults={"name": name, "created_at": at}
    )
    if is_new:
        remember(row, Deed(Action.REGISTER_TAXPAYER, by, at), after=registered(row))
    elif row.name != name:
        raise Impossible(
            _(
                "{taxpayer} is registered already, under the name {name}."
                " Check the identifier, or rename the taxpayer in the admin."
            ).format(taxpayer=taxpayer, name=row.name)
        )
    return row


def registered(row: Taxpayer) -> dict[str, object]:
    """What the history says of a new taxpayer."""
    return {"tin": row.tin, "rob": row.rob, "name": row.name, "is_active": row.is_active}


@transaction.atomic
def rename_taxpayer(
    *, taxpayer: Taxpayer, name: str, reason: str, by: Author, at: datetime
) -> Taxpayer:
    """Give it another name; nothing happens if it has that name."""
    deed = Deed(Action.RENAME_TAXPAYER, by, at, checked_reason(reason))
    row = locked(taxpayer)
    change(row, deed, name=checked_name(name))
    return row


@transaction.atomic
def set_taxpayer_active(
    *, taxpayer: Taxpayer, is_active: bool, reason: str, by: Author, at: datetime
) -> Taxpayer:
    """Activate or deactivate it: without an active taxpayer its system users get no token."""
    action = Action.ACTIVATE_TAXPAYER if is_active else Action.DEACTIVATE_TAXPAYER
    deed = Deed(action, by, at, checked_reason(reason))
    row = locked(taxpayer)
    change(row, deed, is_active=is_active)
    return row
