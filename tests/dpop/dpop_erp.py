"""An ERP system whose tokens are bound to its key; it signs with another library than we do."""

import json
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import jwt
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from tests.client_auth.key_erp import KeyPair, new_pair
from tests.support.erp import Erp, new_erp
from tokens.dpop.proof import hash_of_token
from tokens.models import LoginEvent

NONCE = "DPoP-Nonce"
NAMES = {
    "ES256": {"kty", "crv", "x", "y"},
    "PS256": {"kty", "n", "e"},
    "EdDSA": {"kty", "crv", "x"},
}


@dataclass
class DpopErp:
    """A client with a secret, and the key that its tokens are bound to; it remembers the nonce."""

    erp: Erp
    pair: KeyPair
    nonce: str | None = field(default=None, repr=False)

    @property
    def system_user(self) -> SystemUser:
        return self.erp.system_user

    @property
    def jwk(self) -> dict[str, Any]:
        """Its public key, with nothing else."""
        return {k: v for k, v in self.pair.public_jwk.items() if k in NAMES[self.pair.algorithm]}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Right ones for a login, but for these; a claim given as None is left out."""
        right = {
            "jti": str(uuid4()),
            "htm": "POST",
            "htu": f"{settings.AUTH_URL}/connect/token",
            "iat": int(time.time()),
            "nonce": self.nonce,
        }
        return {k: v for k, v in (right | changes).items() if v is not None}

    def proof(
        self, *, header: dict[str, Any] | None = None, pair: KeyPair | None = None, **claims: Any
    ) -> str:
        """A proof with these differences; a value of the header given as None is left out."""
        signer = pair or self.pair
        members = {"typ": "dpop+jwt", "jwk": self.jwk} | (header or {})
        return jwt.encode(
            self.claims(**claims),
            key=signer.private,
            algorithm=signer.algorithm,
            headers={k: v for k, v in members.items() if v is not None} | {"typ": members["typ"]},
        )

    def post(self, proof: str | None = None, **login: Any) -> HttpResponse:
        """One request; without a proof given it sends a right one, as far as it knows the nonce."""
        headers = {"DPoP": self.proof() if proof is None else proof}
        response = self.erp.login(headers=headers | login.pop("headers", {}), **login)
        if NONCE in response:
            self.nonce = response[NONCE]
        return response

    def login(self, **login: Any) -> HttpResponse:
        """As libraries do it: again with the nonce, if the service asks for one."""
        response = self.post(**login)
        return self.post(**login) if reason_of(response) == "use_dpop_nonce" else response

    def token(self, **login: Any) -> str:
        response = self.login(**login)
        assert response.status_code == 200, response.content
        token: str = json.loads(response.content)["access_token"]
        return token

    def api_proof(self, path: str, token: str, method: str = "GET") -> str:
        address = f"{settings.AUTH_URL}{path}"
        return self.proof(htm=method, htu=address, ath=hash_of_token(token), nonce=None)

    def call(
        self, path: str, token: str, method: str = "GET", proof: str | None = None, **headers: str
    ) -> Any:
        sent = proof or self.api_proof(path, token, method)
        fields = {"Authorization": f"DPoP {token}", "DPoP": sent} | headers
        return Client(raise_request_exception=False).generic(method, path, headers=fields)


def new_dpop_erp(*, nonce: bool = True, **system_user: Any) -> DpopErp:
    """A system user whose tokens must be bound to a key; `nonce`: it has one already."""
    found = DpopErp(new_erp(token_binding=TokenBinding.DPOP, **system_user), new_pair())
    if nonce:
        assert reason_of(found.post()) == "use_dpop_nonce"
    return found


def reason_of(response: HttpResponse) -> str:
    """The name of the refusal; empty if there is a token."""
    return response.get("Link", "").partition("/errors/")[2].partition(">")[0]


def events() -> list[str]:
    """How the recorded logins ended, in their order."""
    return list(LoginEvent.objects.order_by("pk").values_list("reason", flat=True))
