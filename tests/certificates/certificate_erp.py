"""An ERP system that logs in with a client certificate, as a trusted proxy reports it."""

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse

from taxpayers.models import SystemUser
from taxpayers.services import use_public_credential
from tests.servers.certificates import PROXY, Authority, IssuedCertificate
from tests.support.erp import post
from tests.support.factories import SystemUserFactory
from tests.support.moments import why

SUBJECT = "CN=erp,O=Kedai Runcit Aminah,C=MY"


@cache
def authority() -> Authority:
    """One for all tests of a process: keys take time."""
    return Authority("Authority of the tests")


@cache
def certificate(subject: str = SUBJECT) -> IssuedCertificate:
    return authority().issue(subject)


def rfc9440(issued: IssuedCertificate) -> dict[str, str]:
    encoded = base64.b64encode(issued.der).decode()
    return {"Client-Cert": f":{encoded}:", "SSL-Client-Verify": "SUCCESS"}


def nginx(issued: IssuedCertificate, verified: str = "SUCCESS") -> dict[str, str]:
    return {"SSL-Client-Cert": issued.escaped, "SSL-Client-Verify": verified}


@dataclass
class CertificateErp:
    """A client with its certificate; `login` sends a right request unless told otherwise."""

    system_user: SystemUser
    issued: IssuedCertificate

    @property
    def client_id(self) -> str:
        return self.system_user.client_id

    def login(
        self,
        issued: IssuedCertificate | None = None,
        *,
        headers: dict[str, str] | None = None,
        more: dict[str, str] | None = None,
        peer: str = PROXY,
        **form: Any,
    ) -> HttpResponse:
        """With this certificate, or with these headers; a parameter given as None is left out."""
        fields = {"grant_type": "client_credentials", "client_id": self.client_id} | form
        sent = nginx(issued or self.issued) if headers is None else headers
        body = urlencode({k: v for k, v in fields.items() if v is not None})
        return post(body, headers=sent | (more or {}), REMOTE_ADDR=peer)


def new_certificate_erp(
    issued: IssuedCertificate | None = None, **system_user: Any
) -> CertificateErp:
    issued = issued or certificate()
    user = use_public_credential(
        system_user=SystemUserFactory.create(**system_user), certificate=issued.pem, **why()
    )
    return CertificateErp(user, issued)
