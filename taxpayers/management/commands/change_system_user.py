"""`change_system_user CLIENT_ID [--name] [--scope S…] [--expires DATE] [--only-taxpayer …] …`."""

from argparse import SUPPRESS
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from taxpayers import services
from taxpayers.certificates import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.management import arguments
from taxpayers.management.command import WRONG_USAGE, Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_system_user
from taxpayers.management.operation_command import Options
from taxpayers.management.shown_credentials import duty_note
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import Author, IssuedSecret

_SECRET = "client_secret"
_BINDINGS = {binding.value or "none": binding for binding in TokenBinding}
# What the service of this name takes; the others have services of their own.
_FIELDS: dict[str, dict[str, Any]] = {
    "name": {"help": "name of the ERP system, for staff"},
    "logins_per_minute": {"metavar": "N", "type": int, "help": "0: unlimited, still counted"},
    "scopes": arguments.words("--scope", "S", "all scopes that it may ask for; others are removed"),
    "return_addresses": arguments.words(
        "--return-address",
        "URL",
        "where its requests for permissions may lead back to; others are removed",
        nargs="*",
    ),
}
_OTHERS: dict[str, dict[str, Any]] = {
    "expires": {
        "metavar": "DATE",
        "type": arguments.parse_end_or_never,
        "help": f"last day of the system user; {arguments.NEVER}: remove it, so that it does not"
        " expire",
    },
    "token_binding": {
        "choices": list(_BINDINGS),
        "help": "what every token of it must be bound to from now on: a key (dpop, RFC 9449), its"
        " certificate (tls, RFC 8705), or none. Tokens that are not bound so end at once",
    },
}
_LOGIN_METHOD: dict[str, dict[str, Any]] = {
    "auth_method": {
        "choices": [_SECRET, PRIVATE_KEY_JWT, TLS_CLIENT_AUTH],
        "help": "how it logs in from now on; what it logged in with before is revoked. A new"
        " secret is shown once",
    },
    "jwks": arguments.file(
        f"with --auth-method {PRIVATE_KEY_JWT}: its public keys (JWK Set, JWK or PEM; -: stdin)"
    ),
    "certificate": arguments.file(
        f"with --auth-method {TLS_CLIENT_AUTH}: its certificate (PEM; -: stdin), whose subject is"
        " registered"
    ),
}
_TOGETHER = (
    (PRIVATE_KEY_JWT, "jwks", "key", "register_client_key CLIENT_ID FILE"),
    (
        *(TLS_CLIENT_AUTH, "certificate", "certificate"),
        "register_client_certificate CLIENT_ID --certificate FILE",
    ),
)
_LIMITS = {"only_permission", "only_taxpayer"}


class Command(ServiceCommand):
    help = (
        "Change the name, the limits, the scopes or the last day of a system user: all that is"
        " given, or nothing. It applies to every login from now on. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        # What is not given is not among the options, so that it stays as it is.
        for name, field in {**_FIELDS, **_OTHERS}.items():
            arguments.add_fields(parser, {name: {**field, "default": SUPPRESS}})
        arguments.add_fields(parser, _LOGIN_METHOD)
        arguments.add_fields(parser, arguments.LIMITS)
        parser.add_argument(
            "--not-limited",
            action="store_true",
            help="remove what limits it to permissions, to taxpayers and to acting for others;"
            " --only-permission, --only-taxpayer and --only-on-behalf then begin anew",
        )
        add_reason(parser)

    @transaction.atomic
    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        _check_options(options)
        row = find_system_user(options["client_id"])
        issued = _change(row, options, {"reason": options["reason"], "by": by, "at": at})
        row.refresh_from_db()
        note = duty_note(row) if "scopes" in options else {}
        expires = f"until {format_moment(row.expires_at)}" if row.expires_at else "no end date"
        limit = (
            f"{row.logins_per_minute} logins per minute" if row.logins_per_minute else "no limit"
        )
        text = f" It logs in with {row.login_method}." if options["auth_method"] else ""
        if row.token_binding:
            text += f" Its tokens must be bound: {row.token_binding}."
        text += "" if issued is None else f"\n\n{secret_text(issued)}"
        return Output(
            {
                **({} if issued is None else secret_data(issued)),
                "client_id": row.client_id,
                "login_method": row.login_method,
                "token_binding": row.token_binding or "none",
                "return_addresses": row.return_addresses.split(),
                **arguments.shown_settings(row),
                **note,
            },
            f"{row.client_id} ({row.name}): {limit}, {expires}, scopes {row.scopes}."
            f"{arguments.limit_text(row)}{text}" + "".join(f"\n\n{line}" for line in note.values()),
        )


def _change(row: SystemUser, options: Options, who: dict[str, Any]) -> IssuedSecret | None:
    issued = None
    if options["auth_method"] == _SECRET:
        issued = services.use_client_secret(system_user=row, **who)
    elif options["auth_method"]:
        keys, certificate = options["jwks"] or "", options["certificate"]
        services.use_public_credential(system_user=row, keys=keys, certificate=certificate, **who)
    if fields := {name: options[name] for name in _FIELDS if name in options}:
        services.change_system_user(system_user=row, **fields, **who)
    if "expires" in options:
        services.extend_system_user(system_user=row, expires_at=options["expires"], **who)
    if "token_binding" in options:
        services.bind_tokens(system_user=row, binding=_BINDINGS[options["token_binding"]], **who)
    if _changes_limit(options):
        limits = arguments.read_limit(options, None if options["not_limited"] else row)
        services.limit_system_user(system_user=row, **limits, **who)
    return issued


def _check_options(options: Options) -> None:
    is_given = {*_FIELDS, *_OTHERS} & options.keys() or _changes_limit(options)
    if not is_given and all(options[name] is None for name in _LOGIN_METHOD):
        raise CommandError(
            "Nothing to change: give --name, --logins-per-minute, --scope, --expires,"
            " --return-address, --only-permission, --only-taxpayer, --only-on-behalf,"
            " --not-limited, --auth-method or --token-binding.",
            returncode=WRONG_USAGE,
        )
    for method, option, kind, instead in _TOGETHER:
        if (options["auth_method"] == method) != (options[option] is not None):
            text = f"--auth-method {method} and --{option} belong together. To add a {kind}:"
            raise CommandError(f"{text} manage.py {instead}", returncode=WRONG_USAGE)


def _changes_limit(options: Options) -> bool:
    is_given = options["only_on_behalf"] or options["not_limited"]
    return is_given or bool(_LIMITS & options.keys())
