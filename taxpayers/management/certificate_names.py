"""The names of certificates that a command line gives."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.certificates.names import NameKind
from taxpayers.management.arguments import read_keys

_FILE = "certificate"
_OPTIONS = {
    "subject_dn": (NameKind.SUBJECT_DN, "DN", "its subject, as RFC 4514 writes it"),
    "san_dns": (NameKind.SAN_DNS, "HOST", "a DNS name in it"),
    "san_uri": (NameKind.SAN_URI, "URI", "a URI in it"),
    "san_email": (NameKind.SAN_EMAIL, "ADDRESS", "an e-mail address in it"),
}


def add_certificate_name(parser: CommandParser, *, required: bool) -> None:
    """One of `--certificate FILE`, `--subject-dn`, `--san-dns`, `--san-uri` and `--san-email`."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        f"--{_FILE}",
        metavar="FILE",
        type=read_keys,
        help="a certificate of the ERP system (PEM; -: stdin): its subject is registered",
    )
    for option, (_kind, metavar, text) in _OPTIONS.items():
        group.add_argument(f"--{option.replace('_', '-')}", metavar=metavar, help=text)


def certificate_name(options: dict[str, Any]) -> dict[str, Any]:
    """Its `text` and `kind`, as services take them; empty: none was given."""
    if options[_FILE] is not None:
        return {"text": options[_FILE], "kind": None}
    for option, (kind, _metavar, _text) in _OPTIONS.items():
        if options[option] is not None:
            return {"text": options[option], "kind": kind}
    return {}
