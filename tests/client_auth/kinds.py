"""What a client logs in with, one row for each kind: a promise to every kind is one test."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol

from django.http import HttpResponse
from django.utils import timezone

from taxpayers.credential_kind import CredentialKind
from taxpayers.credentials import new_client_secret
from taxpayers.models import Credential, SystemUser
from taxpayers.services import (
    issue_secret,
    register_public_credential,
    use_client_secret,
    use_public_credential,
)
from tests.certificates.certificate_erp import CertificateErp, certificate, new_certificate_erp
from tests.client_auth.key_erp import BY, KeyErp, jwks, new_key_erp, new_pair
from tests.support.erp import Erp, new_erp


class Kind(Protocol):
    """A kind of credentials. Each ERP system of it has `login`, `client_id` and `system_user`."""

    name: ClassVar[CredentialKind]
    method: ClassVar[str]
    issued: ClassVar[str]  # the action in the history
    not_accepted: ClassVar[tuple[str, str]]  # what a stranger is told, and who can fix it
    removed: ClassVar[str]
    expired: ClassVar[str]

    def new(self, **system_user: Any) -> Any:
        """A client with one credential, which is live."""

    def stranger(self, erp: Any) -> HttpResponse:
        """A login in the name of this client with what was never registered."""

    def add(self, erp: Any, *, at: datetime | None = None, **more: Any) -> Any:
        """The same client with a further credential, by the service."""

    def use(self, user: SystemUser, *, at: datetime | None = None, **more: Any) -> Any:
        """Change how it logs in to this kind; returns the client with its new credential."""


@dataclass(frozen=True)
class Secret(Kind):
    name = CredentialKind.SECRET
    method = ""
    issued = "rotate_secret"
    not_accepted = ("client_id or client_secret is wrong", "The operator of the ERP system")
    removed = "This client_secret was revoked on"
    expired = "This client_secret expired on"

    def new(self, **system_user: Any) -> Erp:
        return new_erp(**system_user)

    def stranger(self, erp: Any) -> HttpResponse:
        return Erp(erp.client_id, new_client_secret("test")).login()

    def add(self, erp: Any, *, at: datetime | None = None, **more: Any) -> Erp:
        user = erp.system_user
        issued = issue_secret(system_user=user, **_why(at), **more)
        return Erp(erp.client_id, issued.credentials.client_secret, user)

    def use(self, user: SystemUser, *, at: datetime | None = None, **more: Any) -> Erp:
        issued = use_client_secret(system_user=user, **_why(at), **more)
        return Erp(user.client_id, issued.credentials.client_secret, user)


@dataclass(frozen=True)
class Key(Kind):
    name = CredentialKind.KEY
    method = "private_key_jwt"
    issued = "register_client_key"
    not_accepted = ("This client_assertion is not accepted", "The developer of the ERP system")
    removed = "The key of this client_assertion was removed on"
    expired = "The key of this client_assertion expired on"

    def new(self, **system_user: Any) -> KeyErp:
        return new_key_erp(**system_user)

    def stranger(self, erp: Any) -> HttpResponse:
        """It knows the name of the key, where there is one."""
        pair = new_pair(kid=erp.pair.kid if isinstance(erp, KeyErp) else "")
        return KeyErp(SystemUser(client_id=erp.client_id), pair).login()

    def add(self, erp: Any, *, at: datetime | None = None, **more: Any) -> KeyErp:
        user, pair = erp.system_user, new_pair()
        register_public_credential(system_user=user, keys=jwks(pair), **_why(at), **more)
        return KeyErp(user, pair)

    def use(self, user: SystemUser, *, at: datetime | None = None, **more: Any) -> KeyErp:
        pair = new_pair()
        return KeyErp(
            use_public_credential(system_user=user, keys=jwks(pair), **_why(at), **more), pair
        )


@dataclass(frozen=True)
class Certificate(Kind):
    name = CredentialKind.CERTIFICATE
    method = "tls_client_auth"
    issued = "register_client_certificate"
    not_accepted = ("This certificate is not accepted", "The operator of the ERP system")
    removed = "The registration of this certificate was removed on"
    expired = "The registration of this certificate expired on"

    def new(self, **system_user: Any) -> CertificateErp:
        return new_certificate_erp(**system_user)

    def stranger(self, erp: Any) -> HttpResponse:
        user = SystemUser(client_id=erp.client_id)
        return CertificateErp(user, certificate("CN=other,C=MY")).login()

    def add(self, erp: Any, *, at: datetime | None = None, **more: Any) -> CertificateErp:
        number = erp.system_user.credentials.count()
        user, issued = erp.system_user, certificate(f"CN=erp{number},C=MY")
        register_public_credential(system_user=user, certificate=issued.pem, **_why(at), **more)
        return CertificateErp(user, issued)

    def use(self, user: SystemUser, *, at: datetime | None = None, **more: Any) -> CertificateErp:
        issued = certificate()
        changed = use_public_credential(
            system_user=user, certificate=issued.pem, **_why(at), **more
        )
        return CertificateErp(changed, issued)


SECRET, KEY, CERTIFICATE = Secret(), Key(), Certificate()
KINDS: tuple[Kind, ...] = (SECRET, KEY, CERTIFICATE)


def _why(at: datetime | None) -> dict[str, Any]:
    return {"reason": "asked by letter", "by": BY, "at": at or timezone.now()}


def newest(erp: Any) -> Credential:
    row: Credential = erp.system_user.credentials.latest("pk")
    return row
