"""The commands that change what many system users log in with."""

import csv
import io
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from django.core.management.base import CommandError, CommandParser
from django.db import Error, transaction

from taxpayers.management.arguments import parse_end, parse_start, read_keys
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.database_errors import exit_code
from taxpayers.management.find_records import add_system_users, read_system_users, with_bar
from taxpayers.management.operation_command import Options
from taxpayers.services import Author, ServiceError, issue_secret, revoke_credential
from taxpayers.services.credential_changes import REVOKE_SECRETS, ROTATE_SECRET, why_no_secret


class _RevokeSecrets(ServiceCommand):
    """`CLIENT_ID…|--file FILE|--all [--before DATE] --yes`: what a leak has touched."""

    operation = REVOKE_SECRETS
    note = "Every valid one of the system users that are named, or of all. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_system_users(parser)
        text = "only those that were created before this day or moment"
        parser.add_argument("--before", metavar="DATE", type=parse_start, help=text)
        parser.add_argument("--yes", action="store_true", help="without it, only count them")
        add_reason(parser)

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        owners, before = read_system_users(options), options["before"] or at
        chosen = [
            row
            for owner in with_bar(owners, "system users")
            for row in owner.credentials.all()
            if row.is_live(at) and row.created_at < before
        ]
        if not options["yes"]:
            raise CommandError(
                f"This would revoke {len(chosen)} secrets, keys and certificates of {len(owners)}"
                " system users. Nothing has been revoked. To do it, say --yes."
            )
        for done, row in enumerate(with_bar(chosen, "credentials")):
            try:
                revoke_credential(credential=row, reason=options["reason"], by=by, at=at)
            except (Error, ServiceError) as fault:
                code = exit_code(fault) if isinstance(fault, Error) else 1
                line = f"Stopped after {done} of {len(chosen)}, which are revoked: repeat it."
                raise CommandError(line, returncode=code) from fault
        return Output({"revoked": len(chosen)}, f"Revoked: {len(chosen)}.")


class _RotateSecrets(ServiceCommand):
    """`CLIENT_ID…|--file FILE|--all --to CERTIFICATE --output FILE`.

    The file is S/MIME (CMS, RFC 5652): only the owner of the certificate can read it, for example
    by `openssl cms -decrypt -inform PEM -in FILE -inkey KEY`.
    """

    operation = ROTATE_SECRET
    note = (
        "Of many system users: all or none, into an encrypted CSV file. With --all, of those that"
        " have a secret, and no new one yet."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_system_users(parser)
        text = "who can decrypt it: a certificate with an RSA key (PEM; -: stdin)"
        parser.add_argument("--to", metavar="CERTIFICATE", type=read_keys, required=True, help=text)
        text = "the new file, which must not exist"
        parser.add_argument("--output", metavar="FILE", type=Path, required=True, help=text)
        text = "last day of the new secrets"
        parser.add_argument("--secret-expires", metavar="DATE", type=parse_end, help=text)
        add_reason(parser)

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        try:
            certificate = x509.load_pem_x509_certificate(options["to"].encode())
            envelope = pkcs7.PKCS7EnvelopeBuilder().add_recipient(certificate)
        except (ValueError, TypeError) as fault:
            raise CommandError(f"Nothing can be encrypted to this certificate: {fault}.") from None
        owners, ends = read_system_users(options), options["secret_expires"]
        if options["all"]:
            owners = [owner for owner in owners if not why_no_secret(owner, at)]
        rows = io.StringIO()
        table = csv.writer(rows)
        table.writerow(("client_id", "client_secret", "secret_expires_at"))
        given = {"expires_at": ends, "reason": options["reason"], "by": by, "at": at}
        with transaction.atomic():
            for owner in with_bar(owners, "secrets"):
                issued = issue_secret(system_user=owner, **given)
                new = issued.credentials
                table.writerow((new.client_id, new.client_secret, issued.secret.expires_at))
            envelope = envelope.set_data(rows.getvalue().encode())
            envelope = envelope.set_content_encryption_algorithm(AES256)
            encrypted = envelope.encrypt(Encoding.PEM, [pkcs7.PKCS7Options.Binary])
            try:
                with options["output"].open("xb") as file:
                    file.write(encrypted)
            except FileExistsError:
                raise CommandError(f"{options['output']} exists already.") from None
            except OSError as fault:
                options["output"].unlink(missing_ok=True)
                raise CommandError(f"{options['output']}: {fault.strerror}.") from None
        text = f"{len(owners)} new secrets are in {options['output']}. The old ones still work."
        return Output({"issued": len(owners)}, text)


COMMANDS = {"revoke_secrets": _RevokeSecrets, "rotate_secrets": _RotateSecrets}
