"""The options of commands that limit credentials: for which taxpayers, with what, from where."""

from argparse import SUPPRESS
from collections.abc import Collection
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.identifiers import TaxpayerId
from taxpayers.management.arguments import parse_taxpayer_id
from taxpayers.models import Credential, SystemUser
from taxpayers.validation import taxpayer_notation


def add_limit_options(parser: CommandParser) -> None:
    """`--only-permission CODE…` and `--only-taxpayer TIN[:ROB]…`; read them with `read_limit`."""
    parser.add_argument(
        "--only-permission",
        metavar="CODE",
        nargs="+",
        action="extend",
        default=SUPPRESS,
        help="on behalf of others it gets these permissions at most, and only what was granted",
    )
    parser.add_argument(
        "--only-taxpayer",
        metavar="TIN[:ROB]",
        nargs="+",
        action="extend",
        type=parse_taxpayer_id,
        default=SUPPRESS,
        help="it may act for these taxpayers only, and only if they grant it",
    )


def read_limit(
    options: dict[str, Any], present: SystemUser | None = None
) -> tuple[Collection[str], Collection[TaxpayerId]]:
    """The permissions and taxpayers given; what is not given stays as it is with `present`."""
    permissions: Collection[str] = present.allowed_permissions.split() if present else ()
    names = present.allowed_taxpayers.split() if present else ()
    taxpayers = [taxpayer_notation().parse(name) for name in names]
    return options.get("only_permission", permissions), options.get("only_taxpayer", taxpayers)


def limit_data(row: SystemUser) -> dict[str, Any]:
    """For machines; empty lists: it is not limited."""
    return {
        "allowed_permissions": row.allowed_permissions.split(),
        "allowed_taxpayers": row.allowed_taxpayers.split(),
    }


def limit_text(row: SystemUser) -> str:
    """One or two sentences, each with a blank before it; empty if it is not limited."""
    text = ""
    if row.allowed_permissions:
        text += f" On behalf of others it gets at most {row.allowed_permissions}."
    if row.allowed_taxpayers:
        text += f" It may act for {row.allowed_taxpayers} only."
    return text + (" It gets no token for its own taxpayer." if text else "")


def add_network_options(
    parser: CommandParser, present: str = "", *, required: bool = False
) -> None:
    """`--from-network NETWORK…` or `--from-anywhere`: `allowed_networks`; None: neither."""
    either = parser.add_mutually_exclusive_group(required=required)
    either.add_argument(
        "--from-network",
        dest="allowed_networks",
        metavar="NETWORK",
        nargs="+",
        action="extend",
        help="it may be used from these networks only: 203.0.113.0/24, 2001:db8::/32, or a single"
        f" address{present}",
    )
    either.add_argument(
        "--from-anywhere",
        dest="allowed_networks",
        action="store_const",
        const=(),
        help="it may be used from any address",
    )


def networks_text(secret: Credential) -> str:
    """From where it may be used, to end a sentence."""
    networks = ", ".join(secret.allowed_networks.split())
    return f"from {networks} only" if networks else "from anywhere"
