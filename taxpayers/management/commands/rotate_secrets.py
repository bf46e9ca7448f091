"""`rotate_secrets CLIENT_ID…|--file FILE|--all --to CERTIFICATE --output FILE`: many new secrets.

The file is S/MIME (CMS, RFC 5652): only the owner of the certificate can read it, for example by
`openssl cms -decrypt -inform PEM -in FILE -inkey KEY`.
"""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from taxpayers.management.arguments import parse_end, read_keys
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import add_system_users, read_system_users, with_bar
from taxpayers.services import Author, issue_secret
from taxpayers.services.credential_changes import ROTATE_SECRET, why_no_secret


class Command(ServiceCommand):
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

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
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
