"""An ERP system that logs in with a private key, signing with another library than the service."""

import json
import time
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key as new_ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as new_rsa
from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.utils import base64url_decode, base64url_encode

from taxpayers.models import SystemUser
from taxpayers.services import Author, use_public_credential
from tests.support import make
from tests.support.erp import post

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
BY = Author("tester")
# A key of RSA takes a tenth of a second: those of one test differ, and the next one has them again.
_RSA_KEYS, _RSA_NUMBERS = 4, count()
_JWK = {"ES256": ECAlgorithm, "PS256": RSAAlgorithm, "EdDSA": OKPAlgorithm}


@dataclass
class KeyPair:
    algorithm: str
    private: Any = field(repr=False)
    kid: str

    @property
    def public_jwk(self) -> dict[str, Any]:
        return self._members(self.private.public_key())

    @property
    def private_jwk(self) -> dict[str, Any]:
        return self._members(self.private)

    def _members(self, key: Any) -> dict[str, Any]:
        members: dict[str, Any] = json.loads(_JWK[self.algorithm].to_jwk(key))  # type: ignore[attr-defined]
        return {k: v for k, v in members.items() if k != "key_ops"} | {"kid": self.kid}


@cache
def _rsa_keys() -> list[Any]:
    return [new_rsa(public_exponent=65537, key_size=2048) for _ in range(_RSA_KEYS)]


def new_pair(algorithm: str = "ES256", kid: str = "") -> KeyPair:
    private: Any
    if algorithm == "ES256":
        private = new_ec(SECP256R1())
    elif algorithm == "EdDSA":
        private = Ed25519PrivateKey.generate()
    else:
        private = _rsa_keys()[next(_RSA_NUMBERS) % _RSA_KEYS]
    return KeyPair(algorithm, private, kid or f"key-{uuid4()}")


@dataclass
class KeyErp:
    """A client with its key; `login` sends a right request unless told otherwise."""

    system_user: SystemUser
    pair: KeyPair

    @property
    def client_id(self) -> str:
        return self.system_user.client_id

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Right ones, but for these; a claim given as None is left out."""
        now = int(time.time())
        right = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": settings.AUTH_URL,
            "jti": str(uuid4()),
            "iat": now,
            "exp": now + 60,
        }
        return {k: v for k, v in (right | changes).items() if v is not None}

    def assertion(
        self, *, header: dict[str, Any] | None = None, pair: KeyPair | None = None, **claims: Any
    ) -> str:
        signer = pair or self.pair
        return jwt.encode(
            self.claims(**claims),
            key=signer.private,
            algorithm=signer.algorithm,
            headers={"kid": signer.kid, "typ": "client-authentication+jwt"} | (header or {}),
        )

    def form(self, assertion: str | None = None) -> dict[str, Any]:
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": JWT_BEARER,
            "client_assertion": self.assertion() if assertion is None else assertion,
        }

    def login(
        self, assertion: str | None = None, *, headers: Any = None, **form: Any
    ) -> HttpResponse:
        fields = {k: v for k, v in {**self.form(assertion), **form}.items() if v is not None}
        return post(urlencode(fields), headers=headers or {})


def signed_as(algorithm: str, encoded: str, pair: KeyPair) -> str:
    """The JWT with another name of the algorithm of its Ed25519 key; PyJWT knows one of them."""
    header, claims, _ = encoded.split(".")
    members = json.loads(base64url_decode(header)) | {"alg": algorithm}
    signed = b".".join((base64url_encode(json.dumps(members).encode()), claims.encode()))
    return b".".join((signed, base64url_encode(pair.private.sign(signed)))).decode()


def jwks(*pairs: KeyPair) -> str:
    return json.dumps({"keys": [pair.public_jwk for pair in pairs]})


def new_key_erp(algorithm: str = "ES256", **system_user: Any) -> KeyErp:
    pair = new_pair(algorithm)
    user = use_public_credential(
        system_user=make.system_user(**system_user),
        keys=jwks(pair),
        reason="it has a key",
        by=BY,
        at=timezone.now(),
    )
    return KeyErp(user, pair)
