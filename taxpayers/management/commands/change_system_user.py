"""`change_system_user CLIENT_ID [--name] [--scope S…] [--expires DATE] [--only-taxpayer …] …`."""

from argparse import SUPPRESS
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from taxpayers.certificates.names import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.management.arguments import (
    NEVER,
    add_certificate_name,
    certificate_name,
    parse_end_or_never,
    read_keys,
)
from taxpayers.management.command import WRONG_USAGE, Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_system_user
from taxpayers.management.limit_options import add_limit_options, limit_data, limit_text, read_limit
from taxpayers.management.shown_credentials import duty_note
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import (
    Author,
    IssuedSecret,
    bind_tokens,
    change_system_user,
    extend_system_user,
    limit_system_user,
    use_certificate,
    use_client_secret,
    use_private_key,
)

_SECRET = "client_secret"
_BINDINGS = {binding.value or "none": binding for binding in TokenBinding}
_FIELDS = ("name", "scopes", "logins_per_minute", "return_addresses")
_LIMITS = {"only_permission", "only_taxpayer"}


class Command(ServiceCommand):
    help = (
        "Change the name, the limits, the scopes or the last day of a system user: all that is"
        " given, or nothing. It applies to every login from now on. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        # What is not given is not among the options, so that it stays as it is.
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument("--name", default=SUPPRESS, help="name of the ERP system, for staff")
        parser.add_argument(
            "--logins-per-minute",
            metavar="N",
            type=int,
            default=SUPPRESS,
            help="0: unlimited, still counted",
        )
        parser.add_argument(
            "--scope",
            metavar="S",
            nargs="+",
            action="extend",
            dest="scopes",
            default=SUPPRESS,
            help="all scopes that it may ask for; others are removed",
        )
        parser.add_argument(
            "--return-address",
            metavar="URL",
            nargs="*",
            action="extend",
            dest="return_addresses",
            default=SUPPRESS,
            help="where its requests for permissions may lead back to; others are removed",
        )
        parser.add_argument(
            "--expires",
            metavar="DATE",
            type=parse_end_or_never,
            default=SUPPRESS,
            help=f"last day of the system user; {NEVER}: remove it, so that it does not expire",
        )
        parser.add_argument(
            "--auth-method",
            choices=[_SECRET, PRIVATE_KEY_JWT, TLS_CLIENT_AUTH],
            help="how it logs in from now on; what it logged in with before is revoked. A new"
            " secret is shown once",
        )
        parser.add_argument(
            "--jwks",
            metavar="FILE",
            type=read_keys,
            help=f"with --auth-method {PRIVATE_KEY_JWT}: its public keys (JWK Set, JWK or PEM;"
            " -: stdin)",
        )
        add_certificate_name(parser, required=False)
        parser.add_argument(
            "--token-binding",
            choices=list(_BINDINGS),
            default=SUPPRESS,
            help="what every token of it must be bound to from now on: a key (dpop, RFC 9449), its"
            " certificate (tls, RFC 8705), or none. Tokens that are not bound so end at once",
        )
        add_limit_options(parser)
        parser.add_argument(
            "--not-limited",
            action="store_true",
            help="remove what limits it to permissions and taxpayers; --only-permission and"
            " --only-taxpayer then begin anew",
        )
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        row, issued = _change(find_system_user(options["client_id"]), options, by, at)
        note = duty_note(row) if "scopes" in options else {}
        expires = f"until {format_moment(row.expires_at)}" if row.expires_at else "no end date"
        limit = (
            f"{row.logins_per_minute} logins per minute" if row.logins_per_minute else "no limit"
        )
        data = {} if issued is None else secret_data(issued)
        method = row.token_endpoint_auth_method or _SECRET
        text = f" It logs in with {method}." if options["auth_method"] else ""
        if row.token_binding:
            text += f" Its tokens must be bound: {row.token_binding}."
        text += "" if issued is None else f"\n\n{secret_text(issued)}"
        return Output(
            data
            | {
                "client_id": row.client_id,
                "login_method": method,
                "token_binding": row.token_binding or "none",
                "name": row.name,
                "scopes": row.scopes.split(),
                "logins_per_minute": row.logins_per_minute,
                "expires_at": row.expires_at,
                "return_addresses": row.return_addresses.split(),
                **limit_data(row),
            }
            | note,
            f"{row.client_id} ({row.name}): {limit}, {expires}, scopes {row.scopes}."
            f"{limit_text(row)}{text}" + "".join(f"\n\n{line}" for line in note.values()),
        )


@transaction.atomic
def _change(
    row: SystemUser, options: dict[str, Any], by: Author, at: datetime
) -> tuple[SystemUser, IssuedSecret | None]:
    _check_options(options)
    row, issued = _change_login_method(row, options, by, at)
    who: dict[str, Any] = {"reason": options["reason"], "by": by, "at": at}
    if fields := {name: options[name] for name in _FIELDS if name in options}:
        row = change_system_user(system_user=row, **fields, **who)
    if "expires" in options:
        row = extend_system_user(system_user=row, expires_at=options["expires"], **who)
    if "token_binding" in options:
        row = bind_tokens(system_user=row, binding=_BINDINGS[options["token_binding"]], **who)
    if _changes_limit(options):
        permissions, taxpayers = read_limit(options, None if options["not_limited"] else row)
        row = limit_system_user(
            system_user=row, permissions=permissions, taxpayers=taxpayers, **who
        )
    return row, issued


def _check_options(options: dict[str, Any]) -> None:
    method, keys = options["auth_method"], options["jwks"]
    name = certificate_name(options)
    is_given = {*_FIELDS, "expires", "token_binding"} & options.keys() or _changes_limit(options)
    if not (is_given or name) and method is None and keys is None:
        raise CommandError(
            "Nothing to change: give --name, --logins-per-minute, --scope, --expires,"
            " --return-address, --only-permission, --only-taxpayer, --not-limited, --auth-method"
            " or --token-binding.",
            returncode=WRONG_USAGE,
        )
    _check_together(method, has_keys=keys is not None, has_name=bool(name))


def _check_together(method: str | None, *, has_keys: bool, has_name: bool) -> None:
    if (method == PRIVATE_KEY_JWT) != has_keys:
        raise CommandError(
            f"--auth-method {PRIVATE_KEY_JWT} and --jwks belong together. To add a key:"
            " manage.py register_client_key CLIENT_ID FILE",
            returncode=WRONG_USAGE,
        )
    if (method == TLS_CLIENT_AUTH) != has_name:
        raise CommandError(
            f"--auth-method {TLS_CLIENT_AUTH} and --certificate (or --subject-dn, --san-dns,"
            " --san-uri, --san-email) belong together. To add a certificate:"
            " manage.py register_client_certificate CLIENT_ID --certificate FILE",
            returncode=WRONG_USAGE,
        )


def _changes_limit(options: dict[str, Any]) -> bool:
    return bool(_LIMITS & options.keys()) or options["not_limited"]


def _change_login_method(
    row: SystemUser, options: dict[str, Any], by: Author, at: datetime
) -> tuple[SystemUser, IssuedSecret | None]:
    method, reason = options["auth_method"], options["reason"]
    if method == PRIVATE_KEY_JWT:
        return use_private_key(
            system_user=row, keys=options["jwks"], reason=reason, by=by, at=at
        ), None
    if method == TLS_CLIENT_AUTH:
        name = certificate_name(options)
        return use_certificate(system_user=row, reason=reason, by=by, at=at, **name), None
    if method == _SECRET:
        issued = use_client_secret(system_user=row, reason=reason, by=by, at=at)
        return issued.system_user, issued
    return row, None
