"""The package for API teams accepts a bound token with a right proof alone (RFC 9449 section 7)."""

import base64
import json
from typing import Any

import jwt
import pytest

from einvoicing_tokens import (
    InvalidProof,
    InvalidToken,
    ProvedRequest,
    TokenError,
    TokenVerifier,
    Unavailable,
)
from einvoicing_tokens.dpop.used_proofs import UsedProofsOfProcess
from taxpayers.client_keys import read_public_jwk
from tests.client_auth.key_erp import KeyPair, new_pair, signed_as
from tests.dpop.dpop_erp import NAMES
from tests.packages.issuer import AT, Issuer
from tests.packages.test_access_tokens import encoded
from tokens.dpop.proof import hash_of_token
from tokens.keys.signer import sign

API = "https://api.example.org"
ALGS = 'algs="ES256 PS256 EdDSA"'


class Client:
    """Who has the key that the token is bound to."""

    def __init__(self, issuer: Issuer, algorithm: str = "ES256", **claims: Any) -> None:
        self.issuer, self.pair = issuer, new_pair(algorithm)
        self.token = issuer.token(cnf={"jkt": read_public_jwk(self.jwk(self.pair))[1]}, **claims)

    def jwk(self, pair: KeyPair) -> dict[str, Any]:
        return {k: v for k, v in pair.public_jwk.items() if k in NAMES[pair.algorithm]}

    def claims(self, **changes: Any) -> dict[str, Any]:
        right = {
            "jti": "a-proof",
            "htm": "POST",
            "htu": f"{API}/documents",
            "iat": int(AT.timestamp() + self.issuer.clock.seconds),
            "ath": hash_of_token(self.token),
        }
        return {k: v for k, v in (right | changes).items() if v is not None}

    def proof(self, header: Any = None, pair: KeyPair | None = None, **claims: Any) -> str:
        signer = pair or self.pair
        headers = {"typ": "dpop+jwt", "jwk": self.jwk(signer)} | (header or {})
        algorithm = headers.pop("alg", signer.algorithm)
        return jwt.encode(
            self.claims(**claims), signer.private, algorithm=algorithm, headers=headers
        )

    def send(
        self,
        verifier: TokenVerifier,
        *proofs: str | None,
        scheme: str = "DPoP",
        path: str = "/documents",
    ) -> Any:
        sent = ProvedRequest("POST", path, proofs or [self.proof()])
        return verifier.authenticate(f"{scheme} {self.token}", request=sent)


@pytest.fixture
def client(issuer: Issuer) -> Client:
    return Client(issuer)


@pytest.fixture
def verifier(issuer: Issuer) -> TokenVerifier:
    return issuer.verifier(address=API)


def refused(kind: type[TokenError], client: Client, verifier: TokenVerifier, *proofs: Any) -> str:
    with pytest.raises(kind) as error:
        client.send(verifier, *proofs)
    assert error.value.status == 401
    code = "invalid_dpop_proof" if kind is InvalidProof else "invalid_token"
    assert error.value.headers["WWW-Authenticate"] == f'DPoP error="{code}", {ALGS}'
    return str(error.value)


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_with_the_right_proof_it_is_accepted(issuer: Issuer, algorithm: str) -> None:
    client, verifier = Client(issuer, algorithm), issuer.verifier(address=API)
    token = client.send(verifier)
    assert (token.client_id, token.is_bound) == ("ci_test_1", True)
    if algorithm == "EdDSA":  # by its new name, too: RFC 9864
        renamed = signed_as("Ed25519", client.proof(jti="another"), client.pair)
        assert client.send(verifier, renamed).is_bound


def test_sent_as_a_bearer_token_it_is_refused(client: Client, verifier: TokenVerifier) -> None:
    with pytest.raises(InvalidToken, match="Authorization: DPoP") as error:
        client.send(verifier, scheme="Bearer")
    assert error.value.headers["WWW-Authenticate"] == f'DPoP error="invalid_token", {ALGS}'


def test_an_unbound_token_is_not_accepted_as_a_bound_one(
    issuer: Issuer, client: Client, verifier: TokenVerifier
) -> None:
    client.token = issuer.token()
    assert "not bound to a key" in refused(InvalidToken, client, verifier)
    assert client.send(verifier, scheme="Bearer").client_id == "ci_test_1"


@pytest.mark.parametrize(
    "confirmation", [{"x5t#S256": "x"}, {"jkt": "x", "x5t#S256": "y"}, {}, "x", None, {"jkt": ""}]
)
def test_a_token_that_is_bound_to_something_else_is_refused(
    issuer: Issuer, client: Client, verifier: TokenVerifier, confirmation: Any
) -> None:
    client.token = sign(issuer.claims() | {"cnf": confirmation}, issuer.signer, "at+jwt")
    for scheme in ("Bearer", "DPoP"):
        with pytest.raises(InvalidToken, match="cannot check"):
            client.send(verifier, scheme=scheme)


def test_a_thief_of_the_token_has_no_key(client: Client, verifier: TokenVerifier) -> None:
    other = new_pair()
    assert "another key" in refused(InvalidProof, client, verifier, client.proof(pair=other))
    forged = client.proof({"jwk": client.jwk(client.pair)}, pair=other)
    assert "signature" in refused(InvalidProof, client, verifier, forged)


def test_a_proof_opens_once(client: Client, verifier: TokenVerifier) -> None:
    proof = client.proof()
    assert client.send(verifier, proof)
    assert "used before" in refused(InvalidProof, client, verifier, proof)
    client.issuer.clock.seconds = 61
    assert "60 seconds" in refused(InvalidProof, client, verifier, proof)
    assert client.send(verifier)  # the same jti, in a proof of now


SURROGATE = "\ud800"  # JSON can name it, and no encoding has it


@pytest.mark.parametrize(
    ("says", "claims"),
    [
        *(("htm", {"htm": method}) for method in ("GET", None, SURROGATE)),
        *(("htu", {"htu": f"{API}/{path}"}) for path in ("reports", "/[x", "/\N{ACCOUNT OF}")),
        *(("htu", {"htu": url}) for url in ("https://testserver/documents", 1, "https://[::1")),
        ("htu", {"htu": SURROGATE}),
        *(("ath", {"ath": value}) for value in (None, hash_of_token("x"), SURROGATE)),
        ("ath", {"jti": SURROGATE, "ath": ""}),
        *(("60 seconds", {"iat": int(AT.timestamp()) + seconds}) for seconds in (-61, 11)),
        ("60 seconds", {"iat": float("nan")}),
        *(("must have iat", {"iat": value}) for value in (None, True)),
        *(("must have a jti", {"jti": value}) for value in (None, "j" * 129)),
    ],
    ids=ascii,
)
def test_a_claim_is_wrong(
    client: Client, verifier: TokenVerifier, says: str, claims: dict[str, Any]
) -> None:
    header, _payload, _signature = client.proof().split(".")
    proof = resign(client, header, encoded(client.claims(**claims)))
    assert says in refused(InvalidProof, client, verifier, proof)


def resign(client: Client, header: str, payload: str) -> str:
    """With claims of any type, which the library would not write."""
    algorithm = jwt.get_algorithm_by_name("ES256")
    signature = algorithm.sign(f"{header}.{payload}".encode(), client.pair.private)
    return f"{header}.{payload}.{encoded(signature)}"


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"typ": "JWT"}, "typ"),
        ({"crit": ["exp"]}, "crit"),
        *(
            ({"jwk": jwk}, "public key")
            for jwk in (
                *(None, {}, {"kty": "oct", "k": "AAAA"}, {"kty": ["EC"]}),
                {"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"},
            )
        ),
    ],
    ids=str,
)
def test_the_header_is_wrong(
    client: Client, verifier: TokenVerifier, header: dict[str, Any], says: str
) -> None:
    original = json.loads(base64.urlsafe_b64decode(client.proof().split(".")[0] + "=="))
    proof = resign(client, encoded(original | header), encoded(client.claims()))
    assert says in refused(InvalidProof, client, verifier, proof)


def test_a_private_key_and_another_algorithm_are_refused(issuer: Issuer) -> None:
    verifier = issuer.verifier(address=API)
    for algorithm in ("ES256", "PS256", "EdDSA"):
        client = Client(issuer, algorithm)
        private = {k: v for k, v in client.pair.private_jwk.items() if k != "kid"}
        proof = client.proof({"jwk": private})
        assert "public key" in refused(InvalidProof, client, verifier, proof)
    client = Client(issuer, "PS256")
    assert "PS256" in refused(InvalidProof, client, verifier, client.proof({"alg": "RS256"}))


@pytest.mark.parametrize(
    ("says", "proofs"),
    [
        *(("send a proof", [proof]) for proof in (None, "")),
        *(("compact form", [proof]) for proof in ("x", "a.b.c", "W10.W10.W10")),
        ("longer than 4096", ["x" * 4097]),
        *(("more than once", proofs) for proofs in (["a.b.c"] * 2, ["a.b.c,a.b.c"])),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_proof(
    client: Client, verifier: TokenVerifier, says: str, proofs: list[Any]
) -> None:
    assert says in refused(InvalidProof, client, verifier, *proofs)


def test_too_many_proofs_at_once_are_a_503_and_never_forgotten() -> None:
    used = UsedProofsOfProcess(most=2)
    assert used.is_first("a", 60, at=0)
    assert used.is_first("b", 30, at=0)
    assert not used.is_first("a", 60, at=0)
    with pytest.raises(Unavailable):
        used.is_first("c", 60, at=0)
    assert used.is_first("c", 90, at=30)  # b has expired
    assert not used.is_first("a", 60, at=30)


def test_a_store_of_its_own_can_be_shared_by_processes(issuer: Issuer, client: Client) -> None:
    class Shared:
        def __init__(self) -> None:
            self.names: set[str] = set()

        def is_first(self, name: str, expires_at: float, at: float) -> bool:
            assert expires_at == at + 60
            is_first = name not in self.names
            self.names.add(name)
            return is_first

    shared = Shared()
    one, other = (issuer.verifier(address=API, used_proofs=shared) for _ in range(2))
    proof = client.proof()
    assert client.send(one, proof)
    assert "used before" in refused(InvalidProof, client, other, proof)
