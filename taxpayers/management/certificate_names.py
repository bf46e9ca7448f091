"""The names of certificates: those that a command line gives, and what commands show of them."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from taxpayers.certificates.names import NameKind
from taxpayers.management.arguments import read_keys
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment

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


def certificates_data(owner: SystemUser) -> dict[str, Any]:
    """What the ERP system and its operator need to know, for machines: all of it is public."""
    return {
        "client_id": owner.client_id,
        "token_endpoint_auth_method": owner.token_endpoint_auth_method,
        "certificates": [
            {"name": row.certificate_name, "hint": row.hint, "expires_at": row.expires_at}
            for row in _live(owner)
        ],
        "environment": settings.ENVIRONMENT,
        "token_endpoint": f"{_base_url()}/connect/token",
    }


def certificates_text(owner: SystemUser) -> str:
    """The same for people."""
    names = "".join(
        f"certificate    {row.certificate_name} ({row}, until {format_moment(row.expires_at)})\n"
        for row in _live(owner)
    )
    return (
        f"client_id      {owner.client_id}\n"
        f"{names}"
        f"log in at      {_base_url()}/connect/token\n"
        "\n"
        "It logs in with tls_client_auth: client_id in the form, and a certificate with this name."
    )


def _base_url() -> str:
    return settings.MTLS_URL or settings.AUTH_URL


def _live(owner: SystemUser) -> Any:
    return owner.credentials.filter(slot__isnull=False).order_by("pk")
