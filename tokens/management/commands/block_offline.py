"""`block_offline CLIENT_ID… --key FILE --reason TEXT`: a block without the database."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from taxpayers.credentials import Prefix, fault_of
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.redaction import hide_pasted_secrets
from taxpayers.services import Author
from tokens.status_lists.offline_blocks import MAX_CLIENTS, OfflineBlock, public_part, signed


class Command(ServiceCommand):
    help = (
        "Block clients while the registry cannot be changed: makes a signed file, which every node"
        " obeys at once, logins and status lists. It needs no database. When the database is back,"
        " block them in the registry too: the file ends with that. See docs/reliability.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_ids", nargs="*", metavar="CLIENT_ID")
        parser.add_argument("--key", type=Path, metavar="FILE", help="the private key that signs")
        parser.add_argument("--reason", metavar="TEXT", help="for the log, and for the history")
        parser.add_argument(
            "--new-key", type=Path, metavar="FILE", help="make a key, once, before any outage"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        if options["new_key"]:
            return _new_key(options["new_key"])
        client_ids = tuple(dict.fromkeys(options["client_ids"]))
        if not (client_ids and options["key"] and options["reason"]):
            raise CommandError("Give client IDs, --key FILE and --reason TEXT, or --new-key FILE.")
        if len(client_ids) > MAX_CLIENTS:
            raise CommandError(f"Give {MAX_CLIENTS} client IDs at most.")
        for client_id in client_ids:
            if fault := fault_of(client_id, Prefix.CLIENT_ID, settings.ENVIRONMENT):
                shown = hide_pasted_secrets(client_id)
                raise CommandError(f"{shown} is no client ID of this service: {fault}.")
        block = OfflineBlock(client_ids, at, by.name, options["reason"])
        file = _written(block, _key(options["key"]))
        lines = (f"  manage.py block_system_user {one} --reason TEXT" for one in client_ids)
        return Output(
            {"file": str(file), "client_ids": client_ids, "at": at},
            f"{file}: the nodes of this machine obey it in a second. Copy it into the same folder"
            " of every other machine with nodes, now.\nIt holds for a day. As soon as the database"
            " is back:\n" + "\n".join(lines),
        )


def _new_key(file: Path) -> Output:
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(text)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    public = public_part(key)
    return Output(
        {"file": str(file), "public_key": public},
        f"{file} has the private key: store it where the operators on duty reach it without this"
        f" service and no other person does.\nSet it on every node, and restart them:\n"
        f"  OFFLINE_BLOCK_KEYS={public}",
    )


def _key(file: Path) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), None)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise CommandError(f"{file} is no private key of block_offline --new-key.")
    if public_part(key) not in settings.OFFLINE_BLOCK_KEYS:
        raise CommandError(
            f"The nodes would refuse this key: OFFLINE_BLOCK_KEYS has no {public_part(key)}."
        )
    return key


def _written(block: OfflineBlock, key: Ed25519PrivateKey) -> Path:
    folder = Path(settings.OFFLINE_BLOCK_DIR)
    file = folder / f"{block.at:%Y%m%dT%H%M%S%fZ}.jwt"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(signed(block, key, settings.AUTH_URL), encoding="ascii")
        new.replace(file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    return file
