"""Changes of system users, the OAuth clients (contract 3 and 4)."""

import re
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Required, Unpack

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.credentials import new_client_id
from taxpayers.duties import MANAGEMENT_SCOPES, are_for_management
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    DEFAULT_LOGINS_PER_MINUTE,
    DEFAULT_SCOPE,
    MAX_LOGINS_PER_MINUTE,
    SystemUser,
    Taxpayer,
)
from taxpayers.operations import ByReason, Operation, Reason
from taxpayers.redaction import hide_secrets
from taxpayers.services import history
from taxpayers.services.acting_limits import validate_limit
from taxpayers.services.credential_changes import IssuedSecret, create_secret
from taxpayers.services.management_clients import check_scopes, lock_to_change, lock_to_stop
from taxpayers.services.new_records import NewRecord
from taxpayers.validation import ServiceError, validate_end, validate_known, validate_name

MAX_ADDRESS_LENGTH = 500
# http only on the developer's own machine (RFC 8252 section 7.3).
_RETURN_ADDRESS = re.compile(
    r"(?=.{1,500}$)(https://[A-Za-z0-9.-]+|http://(127\.0\.0\.1|localhost))(:[0-9]+)?"
    r"(/[!$-;=?-Z_a-z~]*)?"
)


class NewSystemUser(history.Asked, total=False):
    """What a new system user is. Omitted: the defaults. Limits are as for `limit_system_user`."""

    taxpayer: Required[Taxpayer]
    name: Required[str]
    scopes: Collection[str] | None
    expires_at: datetime | None
    logins_per_minute: int | None
    allowed_permissions: Collection[str]
    allowed_taxpayers: Collection[TaxpayerId]
    only_on_behalf: bool


@transaction.atomic
def register_system_user(
    *,
    credentials_expire_at: datetime | None = None,
    allowed_networks: Collection[str] = (),
    **given: Unpack[NewSystemUser],
) -> IssuedSecret:
    """Register a system user of the taxpayer, with its first secret.

    Raises ServiceError for a name that the taxpayer has already: no secret is shown again.
    """
    context, owner, stored = create_system_user(**given)
    return create_secret(owner, credentials_expire_at, context, allowed_networks, stored)


def create_system_user(
    *,
    taxpayer: Taxpayer,
    name: str,
    scopes: Collection[str] | None = None,
    expires_at: datetime | None = None,
    logins_per_minute: int | None = None,
    allowed_permissions: Collection[str] = (),
    allowed_taxpayers: Collection[TaxpayerId] = (),
    only_on_behalf: bool = False,
    token_endpoint_auth_method: str = "",
    token_binding: TokenBinding = TokenBinding.BEARER,
    public_id: str = "",
    **asked: Unpack[history.Asked],
) -> tuple[history.ChangeContext, SystemUser, dict[str, Any]]:
    """Create it without anything to log in with; also the change, and what is stored of it there.

    `public_id`: the id that a client of the sandbox has; all others get a random one.
    """
    context = history.context_of(ISSUE_CREDENTIALS, **asked)
    check_scopes(scopes or (), context.by)
    fields = _new_fields(name, scopes, expires_at, logins_per_minute, context.at)
    present = history.lock_for_update(taxpayer).system_users.filter(name=fields["name"]).first()
    if present is not None:
        text = _(
            "{taxpayer} already has a system user named {name}: {client_id}."
            " Issue a new secret for it, or choose another name."
        )
        raise _already_registered(text, present)
    if allowed_permissions or allowed_taxpayers or only_on_behalf:
        fields |= validate_limit(
            taxpayer, allowed_permissions, allowed_taxpayers, only_on_behalf=only_on_behalf
        )
    if token_endpoint_auth_method:
        fields["token_endpoint_auth_method"] = token_endpoint_auth_method
    if token_binding:
        fields["token_binding"] = token_binding.value
    client_id = public_id or new_client_id(settings.ENVIRONMENT)
    owner = SystemUser.objects.create(client_id=client_id, taxpayer=taxpayer, **fields)
    return context, owner, {"taxpayer": str(taxpayer.identifier), **fields}


def prepare_system_user(
    *,
    taxpayer: Taxpayer,
    name: str,
    scopes: Collection[str] | None,
    expires_at: datetime | None,
    logins_per_minute: int | None,
    at: datetime,
) -> NewRecord:
    """A system user without a secret, or the present one of that name. None: the defaults.

    Raises ServiceError if the present one has other values, or a scope of the management API.
    """
    check_scopes(scopes or (), None)
    fields = _new_fields(name, scopes, expires_at, logins_per_minute, at)
    present = taxpayer.system_users.filter(name=fields["name"]).first()
    if present is None:
        client_id = new_client_id(settings.ENVIRONMENT)
        present = SystemUser(client_id=client_id, taxpayer=taxpayer, **fields)
    elif any(getattr(present, field) != value for field, value in fields.items()):
        text = _(
            "{taxpayer} already has a system user named {name} with other values: {client_id}."
        )
        raise _already_registered(text, present)
    return NewRecord(present, {"taxpayer": str(taxpayer.identifier), **fields})


def _new_fields(
    name: str,
    scopes: Collection[str] | None,
    expires_at: datetime | None,
    logins_per_minute: int | None,
    at: datetime,
) -> dict[str, Any]:
    return {
        "name": validate_name(name),
        "scopes": _validate_scopes((DEFAULT_SCOPE,) if scopes is None else scopes),
        "logins_per_minute": DEFAULT_LOGINS_PER_MINUTE
        if logins_per_minute is None
        else _validate_limit(logins_per_minute),
        "expires_at": validate_end(expires_at, _("the system user"), at, "expires_at"),
    }


def _already_registered(text: str, row: SystemUser) -> ServiceError:
    named = {"taxpayer": row.taxpayer.identifier, "name": row.name, "client_id": row.client_id}
    return ServiceError(text, "already_registered", "name", **named)


CHANGE_SYSTEM_USER = Operation(
    actions.CHANGE_SYSTEM_USER,
    "Change name, scopes or limit",
    "Applies to every login from now on.",
)


@history.makes(CHANGE_SYSTEM_USER, "system_user")
def change_system_user(
    *,
    system_user: SystemUser,
    name: str | None = None,
    scopes: Collection[str] | None = None,
    logins_per_minute: int | None = None,
    return_addresses: Collection[str] | None = None,
    **asked: Unpack[history.Asked],
) -> SystemUser:
    """Change its name, scopes, limit or return addresses; None leaves the value as it is."""
    context = history.context_of(CHANGE_SYSTEM_USER, **asked)
    given: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "name": (name, validate_name),
        "scopes": (scopes, _validate_scopes),
        "logins_per_minute": (logins_per_minute, _validate_limit),
        "return_addresses": (return_addresses, validate_return_addresses),
    }
    fields = {field: valid(value) for field, (value, valid) in given.items() if value is not None}
    row = lock_to_change(system_user, context.by)
    if scopes is not None:
        check_scopes(scopes, context.by)
        _check_credentials(row, scopes, context.at)
    history.update_and_record(row, context, **fields)
    return row


@transaction.atomic
def extend_system_user(
    *, system_user: SystemUser, expires_at: datetime | None, **asked: Unpack[history.Asked]
) -> SystemUser:
    """Set the last moment at which it may log in; None: no end. To stop it at once, block it."""
    context = history.context_of(actions.EXTEND_SYSTEM_USER, **asked)
    row = lock_to_stop(system_user, context.by)
    if expires_at is None or (row.expires_at is not None and expires_at > row.expires_at):
        row = lock_to_change(system_user, context.by)
    end = validate_end(expires_at, _("the system user"), context.at, "expires_at")
    history.update_and_record(row, context, expires_at=end)
    return row


BLOCK_SYSTEM_USER = ByReason(
    actions.BLOCK_SYSTEM_USER,
    "Block the system user",
    "From now on, every login of this system user is refused. Tokens that were already issued:"
    " APIs that check them with this service refuse them within 10 seconds, others accept them"
    " for up to one hour. Only a security officer can unblock it.",
    is_danger=True,
    reason=Reason.ALWAYS,
    unneeded=lambda row: "" if row.blocked_at is None else marked("It is already blocked."),
)


@history.makes(BLOCK_SYSTEM_USER, "system_user")
def block_system_user(*, system_user: SystemUser, **asked: Unpack[history.Asked]) -> SystemUser:
    """Refuse all its logins from now on; nothing happens if it is blocked."""
    context = history.context_of(BLOCK_SYSTEM_USER, **asked)
    row = lock_to_stop(system_user, context.by)
    if not BLOCK_SYSTEM_USER.unneeded(row):
        history.update_and_record(
            row,
            context,
            blocked_at=context.at,
            blocked_by=context.by.name,
            blocked_reason=context.reason,
        )
    return row


UNBLOCK_SYSTEM_USER = ByReason(
    actions.UNBLOCK_SYSTEM_USER,
    "Unblock the system user",
    "It can log in again at once, with what is valid. Tokens from before the block stay ended.",
    reason=Reason.ALWAYS,
    unneeded=lambda row: marked("It is not blocked.") if row.blocked_at is None else "",
)


@history.makes(UNBLOCK_SYSTEM_USER, "system_user")
def unblock_system_user(*, system_user: SystemUser, **asked: Unpack[history.Asked]) -> SystemUser:
    """Let it log in again; nothing happens if it is not blocked."""
    context = history.context_of(UNBLOCK_SYSTEM_USER, **asked)
    row = lock_to_change(system_user, context.by)
    history.update_and_record(row, context, blocked_at=None, blocked_by="", blocked_reason="")
    return row


ISSUE_CREDENTIALS = Operation(
    actions.ISSUE_CREDENTIALS,
    "Issue credentials",
    "This registers a new system user for the taxpayer. A secret is shown once. Have a safe"
    " way ready to give it to the operator of the ERP system.",
)


def _check_credentials(row: SystemUser, scopes: Collection[str], at: datetime) -> None:
    """Raises ServiceError if what staff issued for it would open the management API."""
    if are_for_management(row.scopes) or MANAGEMENT_SCOPES.isdisjoint(scopes):
        return
    if any(secret.is_live(at) for secret in row.credentials.all()):
        english = (  # operators read it
            f"{row.client_id} has credentials that were issued before it was to use the management"
            " API: others may have them. Revoke them first, or issue credentials for a new system"
            " user."
        )
        raise ServiceError(english)


def _validate_scopes(scopes: Collection[str]) -> str:
    return " ".join(validate_known(scopes, settings.SCOPES, _("scope"), "scopes"))


def validate_return_addresses(addresses: Collection[str]) -> str:
    """Exact addresses, separated by blanks: a request names one of them, letter for letter."""
    for address in addresses:
        if not _RETURN_ADDRESS.fullmatch(address):
            raise ServiceError(
                "A return address is https://… without a blank or a fragment, of {longest}"
                " characters at most, not {given}.",
                longest=MAX_ADDRESS_LENGTH,
                given=hide_secrets(address[:60]),
            )
    return " ".join(sorted(set(addresses)))


def _validate_limit(logins_per_minute: int) -> int:
    if not 0 <= logins_per_minute <= MAX_LOGINS_PER_MINUTE:
        raise ServiceError(
            "Choose 0 (unlimited) to {most} logins per minute, not {given}.",
            most=MAX_LOGINS_PER_MINUTE,
            given=logins_per_minute,
        )
    return logins_per_minute
