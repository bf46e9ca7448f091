"""A new ERP system with a key pair and nothing else, which connects. A stranger to our code."""

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass
class StandInErp:
    auth_url: str
    key: Key = field(default_factory=lambda: ECKey.generate_key("P-256"))
    algorithm: str = "ES256"

    @property
    def fingerprint(self) -> str:
        members = self.key.as_dict(private=False)
        text = ",".join(f'"{name}":"{members[name]}"' for name in ("crv", "kty", "x", "y"))
        digits = hashlib.sha256(f"{{{text}}}".encode()).hexdigest().upper()
        return " ".join(digits[n : n + 4] for n in range(0, 20, 4))

    def proof(self, method: str, path: str, jwk: Any = None, **claims: Any) -> str:
        """A new one for this request; a claim given as None is left out."""
        public = self.key.as_dict(private=False)
        sent = {"htm": method, "htu": f"{self.auth_url}{path}", "iat": int(time.time())}
        sent |= {"jti": str(uuid.uuid4()), **claims}
        header = {"typ": "dpop+jwt", "alg": self.algorithm, "jwk": public if jwk is None else jwk}
        left = {name: value for name, value in sent.items() if value is not None}
        return jwt.encode(header, left, self.key, algorithms=[self.algorithm])

    def login_form(self, client_id: str) -> dict[str, str]:
        """What it posts to the token endpoint (RFC 7523)."""
        now = int(time.time())
        claims = {"iss": client_id, "sub": client_id, "aud": self.auth_url, "exp": now + 60}
        header = {"alg": self.algorithm, "kid": self.key.thumbprint()}
        claims |= {"iat": now, "jti": str(uuid.uuid4())}
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": JWT_BEARER,
            "client_assertion": jwt.encode(header, claims, self.key, algorithms=[self.algorithm]),
        }
