"""Finds the records that a command line names; if there is none, the error says what to do."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db.models import Model, QuerySet
from tqdm import tqdm

from taxpayers.credentials import Fault, Prefix, fault_of, hint_of
from taxpayers.identifiers import TaxpayerId
from taxpayers.management.arguments import lines_of
from taxpayers.management.command import WRONG_USAGE
from taxpayers.models import Credential, Intermediary, SystemUser, Taxpayer
from taxpayers.services import ServiceError, named

_Row = TypeVar("_Row", bound=Model)
_FAULT_TEXTS = {
    Fault.BLANKS: "it has blanks around it",
    Fault.QUOTED: "it has quotation marks around it",
    Fault.OTHER_PARTY: "it is of a protected API",
    Fault.OTHER_ENVIRONMENT: "it belongs to the other environment",
    Fault.PLACEHOLDER: "it is a placeholder",
    Fault.CUT_OFF: "it is cut off",
    Fault.MISTYPED: "it is mistyped",
    Fault.FOREIGN: "it does not begin with ci_",
}


def only(rows: "QuerySet[_Row]", text: str) -> _Row:
    """The row that was named. Raises ServiceError with this text if there is none."""
    if (row := rows.first()) is None:
        raise ServiceError(text)
    return row


def find_taxpayer(taxpayer: TaxpayerId) -> Taxpayer:
    """Raises ServiceError if there is none."""
    try:
        return named.find_taxpayer(taxpayer)
    except named.NotRegistered as fault:
        how = f"manage.py register_taxpayer {_arguments(taxpayer)} --name NAME"
        raise ServiceError(f"{fault} Next: {how}") from None


def find_intermediary(taxpayer: TaxpayerId) -> Intermediary:
    """Raises ServiceError if there is no such taxpayer or it is not an intermediary."""
    row = find_taxpayer(taxpayer)
    try:
        return named.role_of(row)
    except named.NotRegistered as fault:
        how = f"manage.py register_intermediary {_arguments(taxpayer)}"
        raise ServiceError(f"{fault} Next: {how}") from None


def _arguments(taxpayer: TaxpayerId) -> str:
    return f"{taxpayer.tin} --rob {taxpayer.rob}" if taxpayer.rob else taxpayer.tin


def find_system_user(client_id: str) -> SystemUser:
    """Raises ServiceError if there is none; a text that may be a secret is not repeated."""
    row = SystemUser.objects.filter(client_id=client_id).first()
    if row is not None:
        return row
    fault = fault_of(client_id, Prefix.CLIENT_ID, settings.ENVIRONMENT)
    if fault is Fault.SWAPPED:
        raise ServiceError(
            "This is a client secret. Give the client ID (ci_…). If others can read this command"
            " line, replace the secret."
        )
    if fault is not None:
        raise ServiceError(f"This is not a client ID of this service: {_FAULT_TEXTS[fault]}.")
    raise ServiceError(f"There is no system user {client_id}.")


def find_secret(system_user: SystemUser, hint: str) -> Credential:
    """That with this ending; of several, the live one. Raises ServiceError, which lists them."""
    secrets = list(system_user.credentials.order_by("-created_at"))
    found = [secret for secret in secrets if secret.hint == hint_of(hint)]
    live = [secret for secret in found if secret.slot is not None]
    if len(live) == 1 or len(found) == 1:
        return (live or found)[0]
    if found:
        raise ServiceError(f"Several secrets end with {hint_of(hint)}. Revoke it in the admin.")
    listed = ", ".join(str(secret) for secret in secrets) or "none"
    raise ServiceError(
        f"{system_user.client_id} has no secret with this ending. Its secrets: {listed}."
    )


def add_system_users(parser: CommandParser) -> None:
    """`CLIENT_ID…`, `--file FILE` or `--all`; read them with `read_system_users`."""
    parser.add_argument("client_ids", metavar="CLIENT_ID", nargs="*", default=[])
    text = "client IDs, one in each line; -: stdin"
    parser.add_argument("--file", metavar="FILE", type=lines_of, default=[], help=text)
    parser.add_argument("--all", action="store_true", help="every system user")


def read_system_users(options: dict[str, Any]) -> list[SystemUser]:
    """Each once. Raises ServiceError at the first that is not known, before anything is changed."""
    named = dict.fromkeys([*options["client_ids"], *options["file"]])
    if bool(named) == options["all"]:
        raise CommandError("Give client IDs, --file or --all.", returncode=WRONG_USAGE)
    return list(SystemUser.objects.all()) if options["all"] else [*map(find_system_user, named)]


def with_bar(rows: Sequence[Any], unit: str) -> Iterable[Any]:
    """The rows, with a progress bar on a terminal, and never in a log file."""
    return tqdm(rows, unit=f" {unit}", file=sys.stderr, disable=None)
