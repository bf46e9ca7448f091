"""For the tests of a protected API: an issuer in memory, and tokens of every kind.

    def test_a_blocked_client_is_refused(token_issuer):
        tokens = token_issuer.verifier()
        token = token_issuer.token(permissions=["documents:submit"], actor="C9876543210")
        token_issuer.end(token)
        with pytest.raises(InvalidToken):
            tokens.verify(token)

pytest finds the fixture `token_issuer` by itself once the package is installed.
"""

import base64
import io
import json
import time
import zlib
from collections.abc import Sequence
from typing import Any

import jwt
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import ec

from einvoicing_tokens.verifier import TokenVerifier

ISSUER = "https://id.test.example.org"
_LIST = f"{ISSUER}/status/0"
_ENTRIES = 8_192


class TokenIssuer:
    """Signs tokens as the identity service does, and publishes what verifies them, in memory."""

    def __init__(self, audience: str = "InvoicingAPI") -> None:
        self.audience, self.is_away = audience, False
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._jwk = {
            **json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key())),
            "kid": "key-of-tests",
            "alg": "ES256",
            "use": "sig",
        }
        self._ended = bytearray(_ENTRIES // 8)
        self._issued = 0

    def verifier(self, **options: Any) -> TokenVerifier:
        """One that trusts this issuer; options of `TokenVerifier`. It sees an end at once."""
        usual: dict[str, Any] = {
            "audience": self.audience,
            "pool": _Pool(self),
            "look_ahead": False,
        }
        return TokenVerifier(ISSUER, **usual | options)

    def token(
        self,
        taxpayer: str = "C1234567890",
        *,
        actor: str = "",
        permissions: Sequence[str] = (),
        scopes: Sequence[str] = ("InvoicingAPI",),
        expired: bool = False,
        bound_to: str = "",
        **claims: Any,
    ) -> str:
        """A token for this taxpayer (TIN or TIN:ROB); with `actor`, of an intermediary.

        `bound_to`: the thumbprint of a key (DPoP). `claims` replace others, such as
        `aud="OtherAPI"`; one that is None is left out.
        """
        index, at = self._issued % _ENTRIES, int(time.time()) - (7_200 if expired else 0)
        self._issued += 1
        tin, _, rob = taxpayer.partition(":")
        made: dict[str, Any] = {
            "iss": ISSUER,
            "sub": taxpayer,
            "aud": self.audience,
            "client_id": "ci_test_1",
            "jti": f"token-{self._issued}",
            "iat": at,
            "exp": at + 3_600,
            "scope": " ".join(scopes),
            "taxpayer": {"tin": tin, "rob": rob} if rob else {"tin": tin},
            "status": {"status_list": {"idx": index, "uri": _LIST}},
            "act": {"sub": actor} if actor else None,
            "permissions": list(permissions) if actor else None,
            "cnf": {"jkt": bound_to} if bound_to else None,
        }
        return self._signed("at+jwt", made | claims)

    def end(self, token: str) -> None:
        """As if its client was blocked, or had ended it."""
        claims = jwt.decode(token, options={"verify_signature": False})
        index = claims["status"]["status_list"]["idx"]
        self._ended[index // 8] |= 1 << index % 8

    def body(self, url: str) -> bytes | None:
        """What it publishes there."""
        if url == f"{ISSUER}/jwks.json":
            return json.dumps({"keys": [self._jwk]}).encode()
        if url == _LIST:
            return self._status_list().encode()
        if url == f"{ISSUER}/.well-known/oauth-authorization-server":
            return json.dumps({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks.json"}).encode()
        return None

    def _status_list(self) -> str:
        packed = base64.urlsafe_b64encode(zlib.compress(bytes(self._ended))).rstrip(b"=").decode()
        at = time.time()
        claims = {"sub": _LIST, "iat": int(at), "exp": int(at) + 1_800, "ttl": 1e-9}
        return self._signed("statuslist+jwt", claims | {"status_list": {"bits": 1, "lst": packed}})

    def _signed(self, typ: str, claims: dict[str, Any]) -> str:
        left = {name: value for name, value in claims.items() if value is not None}
        headers = {"typ": typ, "kid": self._jwk["kid"]}
        return jwt.encode(left, self._key, "ES256", headers)


class _Pool(urllib3.PoolManager):
    """Connections to the issuer in memory; to no other address."""

    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__()
        self._issuer = issuer

    def request(self, method: str, url: str, *_args: Any, **_options: Any) -> Any:
        """An answer of the issuer."""
        if self._issuer.is_away:
            raise urllib3.exceptions.HTTPError("the issuer is away, as the test says")
        body = self._issuer.body(url)
        return urllib3.HTTPResponse(
            io.BytesIO(body or b""), status=404 if body is None else 200, preload_content=False
        )


@pytest.fixture
def token_issuer() -> TokenIssuer:
    """Another issuer for each test."""
    return TokenIssuer()
