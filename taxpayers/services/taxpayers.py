"""Changes of taxpayers (contract 4)."""

from datetime import datetime
from typing import Unpack

from taxpayers import actions
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Taxpayer
from taxpayers.operations import (
    ByReason,
    Operation,
    Reason,
    unneeded_if_active,
    unneeded_if_inactive,
)
from taxpayers.services import history
from taxpayers.services.management_clients import check_taxpayer
from taxpayers.validation import ServiceError, validate_name

REGISTER_TAXPAYER = Operation(actions.REGISTER_TAXPAYER, "Register a taxpayer", reason=Reason.NONE)


@history.makes(REGISTER_TAXPAYER)
def register_taxpayer(
    *, taxpayer: TaxpayerId, name: str, by: history.Author, at: datetime
) -> Taxpayer:
    """Register the taxpayer; safe to repeat. Raises ServiceError if it has another name."""
    name = validate_name(name)
    row, is_new = Taxpayer.objects.get_or_create(
        tin=taxpayer.tin, rob=taxpayer.rob, defaults={"name": name, "created_at": at}
    )
    if is_new:
        history.record_change(
            row,
            history.ChangeContext(actions.REGISTER_TAXPAYER, by, at),
            after=registration_fields(row),
        )
    elif row.name != name:
        raise ServiceError(
            "{taxpayer} is already registered under the name {name}."
            " Check the identifier, or rename the taxpayer.",
            "already_registered",
            "name",
            taxpayer=taxpayer,
            name=row.name,
        )
    return row


def registration_fields(row: Taxpayer) -> dict[str, object]:
    """What the history stores about a new taxpayer."""
    return {"tin": row.tin, "rob": row.rob, "name": row.name, "is_active": row.is_active}


RENAME_TAXPAYER = Operation(
    actions.RENAME_TAXPAYER,
    "Rename the taxpayer",
    "The identifier does not change. Permissions and credentials stay valid.",
)


@history.makes(RENAME_TAXPAYER, "taxpayer")
def rename_taxpayer(*, taxpayer: Taxpayer, name: str, **asked: Unpack[history.Asked]) -> Taxpayer:
    """Change its name; nothing happens if it has that name."""
    context = history.context_of(RENAME_TAXPAYER, **asked)
    row = history.lock_for_update(taxpayer)
    history.update_and_record(row, context, name=validate_name(name))
    return row


DEACTIVATE_TAXPAYER = ByReason(
    actions.DEACTIVATE_TAXPAYER,
    "Deactivate the taxpayer",
    "From now on, no client can log in for this taxpayer: not its own system users, and no"
    " intermediary on its behalf. Its system users also cannot log in on behalf of others."
    " Tokens that were already issued: APIs that check them with this service refuse them"
    " within 10 seconds, others accept them for up to one hour.",
    is_danger=True,
    unneeded=unneeded_if_inactive,
)
ACTIVATE_TAXPAYER = ByReason(
    actions.ACTIVATE_TAXPAYER,
    "Activate the taxpayer",
    "Its system users and its intermediaries can log in for it again.",
    unneeded=unneeded_if_active,
)


@history.switches(ACTIVATE_TAXPAYER, DEACTIVATE_TAXPAYER, "taxpayer")
def set_taxpayer_active(
    *, taxpayer: Taxpayer, is_active: bool, **asked: Unpack[history.Asked]
) -> Taxpayer:
    """Activate or deactivate it: without an active taxpayer its system users get no token."""
    context = history.context_of(ACTIVATE_TAXPAYER if is_active else DEACTIVATE_TAXPAYER, **asked)
    row = history.lock_for_update(taxpayer)
    check_taxpayer(row, context.by)
    history.update_and_record(row, context, is_active=is_active)
    return row
