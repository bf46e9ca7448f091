"""What a system user of an intermediary may do for other taxpayers at most (contract 4)."""

from collections.abc import Collection
from typing import Any, Unpack

from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Intermediary, SystemUser, Taxpayer
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, context_of, makes, update_and_record
from taxpayers.services.management_clients import lock_to_change
from taxpayers.services.named import NotRegistered, no_taxpayer, validate_codes
from taxpayers.validation import ServiceError, refuse_if

MAX_ALLOWED_TAXPAYERS = 500
_SHOWN = 5  # of identifiers that are not registered


LIMIT_SYSTEM_USER = Operation(
    actions.LIMIT_SYSTEM_USER,
    "Limit what it may do for others",
    "A limit gives nothing: tokens carry what taxpayers have granted, as far as it is allowed"
    " here. With a limit it gets no token for its own taxpayer, because such a token has"
    " no limit. Applies to every login from now on; tokens that may do more end.",
    refusal=lambda row, _at: "" if row.is_limited else why_not_limited(row.taxpayer),
)


@makes(LIMIT_SYSTEM_USER, "system_user")
def limit_system_user(
    *,
    system_user: SystemUser,
    permissions: Collection[str],
    taxpayers: Collection[TaxpayerId],
    only_on_behalf: bool | None = None,
    **asked: Unpack[Asked],
) -> SystemUser:
    """Limit it to these permission codes and to acting for these taxpayers; none: no such limit.

    It replaces the limit before. `only_on_behalf`: no token for its own taxpayer, also without such
    a limit; None leaves that as it is. Raises ServiceError if its taxpayer is no intermediary.
    """
    context = context_of(LIMIT_SYSTEM_USER, **asked)
    row = lock_to_change(system_user, context.by)
    only = row.only_on_behalf if only_on_behalf is None else only_on_behalf
    fields = validate_limit(row.taxpayer, permissions, taxpayers, only_on_behalf=only)
    update_and_record(row, context, **fields)
    return row


def validate_limit(
    owner: Taxpayer,
    permissions: Collection[str],
    taxpayers: Collection[TaxpayerId],
    *,
    only_on_behalf: bool,
) -> dict[str, Any]:
    """The limit as it is stored. Raises ServiceError as `limit_system_user`."""
    if permissions or taxpayers or only_on_behalf:
        refuse_if(why_not_limited(owner))
    return {
        "only_on_behalf": only_on_behalf,
        "allowed_permissions": " ".join(
            validate_codes(permissions, "allowed_permissions", "permissions") if permissions else ()
        ),
        "allowed_taxpayers": _validate_taxpayers(owner, taxpayers),
    }


def why_not_limited(owner: Taxpayer) -> str:
    """Why no limit means anything for its system users; empty if one does."""
    if Intermediary.objects.filter(taxpayer=owner).exists():
        return ""
    return _(
        "{taxpayer} is not an intermediary, so its system users cannot act for others. Register it"
        " as an intermediary first, or leave the limit out."
    ).format(taxpayer=owner.identifier)


def _validate_taxpayers(owner: Taxpayer, taxpayers: Collection[TaxpayerId]) -> str:
    wanted = sorted({str(taxpayer): taxpayer for taxpayer in taxpayers}.items())
    if len(wanted) > MAX_ALLOWED_TAXPAYERS:
        raise ServiceError(
            "Give {most} taxpayers at most, not {given}.",
            "too_many",
            "allowed_taxpayers",
            "taxpayers",
            most=MAX_ALLOWED_TAXPAYERS,
            given=len(wanted),
        )
    if str(owner.identifier) in dict(wanted):
        raise ServiceError(
            "Leave {taxpayer} out: it is the system user's own taxpayer, and a limited system"
            " user gets tokens on behalf of others only.",
            "own_taxpayer",
            "allowed_taxpayers",
            "taxpayers",
            taxpayer=owner.identifier,
        )
    named = Taxpayer.objects.filter(tin__in={taxpayer.tin for _name, taxpayer in wanted})
    known = {row.identifier for row in named.only("tin", "rob")}
    if unknown := [name for name, taxpayer in wanted if taxpayer not in known]:
        shown = ", ".join(unknown[:_SHOWN]) + (" …" if unknown[_SHOWN:] else "")
        raise NotRegistered(no_taxpayer(shown), "allowed_taxpayers", "taxpayers")
    return " ".join(name for name, _taxpayer in wanted)
