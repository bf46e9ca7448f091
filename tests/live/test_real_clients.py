"""Third-party clients log in against the service as it runs, and others verify the tokens."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign
from authlib.oauth2.rfc7662 import IntrospectTokenValidator
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import JWKRegistry, KeySet
from myinvois import MyInvoisClient
from myinvois.auth import TokenManager
from oauthlib.oauth2 import BackendApplicationClient
from oauthlib.oauth2.rfc6749.errors import OAuth2Error
from requests_oauthlib import OAuth2Session

from tests.introspection.api import INACTIVE, INTROSPECT, REVOKE
from tests.introspection.party import Party, credentials
from tests.servers.service import Service

pytestmark = pytest.mark.gate

KEY_TYPES: dict[str, tuple[str, str | int]] = {
    "ES256": ("EC", "P-256"),
    "PS256": ("RSA", 2048),
    "EdDSA": ("OKP", "Ed25519"),
}
TIN, REPRESENTED = "C3000000003", "C4000000004:202001234567"


@dataclass
class Live:
    """A running service with one intermediary, its credentials and a permission."""

    service: Service
    client_id: str
    client_secret: str

    @property
    def token_url(self) -> str:
        return f"{self.service.url}/connect/token"

    def metadata(self) -> dict[str, Any]:
        answer = httpx.get(f"{self.service.url}/.well-known/oauth-authorization-server")
        metadata: dict[str, Any] = answer.raise_for_status().json()
        return metadata

    def jwks(self) -> Any:
        return httpx.get(self.metadata()["jwks_uri"]).raise_for_status().json()


@pytest.fixture(scope="module")
def live(node: Service) -> Live:
    node.manage("register_taxpayer", TIN, "--name", "Agent")
    node.manage("register_intermediary", TIN)
    tin, rob = REPRESENTED.split(":")
    node.manage("register_taxpayer", tin, "--rob", rob, "--name", "Represented")
    node.manage(
        "grant_permission",
        *("--taxpayer", REPRESENTED, "--intermediary", TIN, "--permission", "documents:submit"),
    )
    issued = node.manage("issue_credentials", TIN, "--name", "ERP", "--logins-per-minute", "0")
    return Live(node, issued["client_id"], issued["client_secret"])


def test_authlib_logs_in_with_either_client_authentication(live: Live) -> None:
    for method in ("client_secret_post", "client_secret_basic"):
        with AuthlibSession(
            live.client_id, live.client_secret, token_endpoint_auth_method=method
        ) as client:
            token = client.fetch_token(live.token_url, grant_type="client_credentials")
        assert token["token_type"] == "Bearer"
        assert token["expires_in"] == 3600


def test_authlib_logs_in_on_behalf(live: Live) -> None:
    with AuthlibSession(live.client_id, live.client_secret) as client:
        token = client.fetch_token(
            live.token_url, grant_type="client_credentials", headers={"onbehalfof": REPRESENTED}
        )
    claims = jwt.decode(token["access_token"], options={"verify_signature": False})
    assert claims["sub"] == REPRESENTED


def test_authlibs_own_renewal_drops_onbehalfof_and_an_only_on_behalf_client_then_gets_no_token(
    live: Live,
) -> None:
    """What the guide says: it renews with fetch_token of its own, without the headers."""
    ended = {"access_token": "x", "token_type": "Bearer", "expires_at": 1}
    how = {"grant_type": "client_credentials", "token_endpoint": live.token_url, "token": ended}
    with AuthlibSession(live.client_id, live.client_secret, **how) as client:
        shown = client.get(f"{live.service.url}/api/v1/me").json()
    assert (shown["subject"], shown["actor"]) == (TIN, None)
    issued = live.service.manage("issue_credentials", TIN, "--name", "x", "--only-on-behalf")
    with (
        AuthlibSession(issued["client_id"], issued["client_secret"], **how) as client,
        pytest.raises(OAuthError, match="onbehalfof"),
    ):
        client.get(f"{live.service.url}/api/v1/me")


def test_authlib_shows_the_reason_of_a_refusal(live: Live) -> None:
    with (
        AuthlibSession(live.client_id, live.client_secret[:-4]) as client,
        pytest.raises(OAuthError, match=r"invalid_client.*cut off.*Reference: "),
    ):
        client.fetch_token(live.token_url, grant_type="client_credentials")


# RFC 9864 calls the same algorithm Ed25519; FAPI 2 and its tests still name EdDSA.
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated:joserfc.errors.SecurityWarning")
@pytest.mark.parametrize(("algorithm", "key_type"), KEY_TYPES.items())
def test_authlib_logs_in_with_a_private_key(
    live: Live, tmp_path: Path, algorithm: str, key_type: tuple[str, str | int]
) -> None:
    key = JWKRegistry.generate_key(*key_type, {"kid": f"{algorithm}-2026"})
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    issued = live.service.manage(
        *("issue_credentials", TIN, "--name", algorithm, "--jwks", str(tmp_path / "jwks.json"))
    )

    class Signed(PrivateKeyJWT):  # type: ignore[misc]  # Authlib has no types
        def sign(self, auth: Any, token_endpoint: str) -> Any:
            return private_key_jwt_sign(
                key,
                client_id=auth.client_id,
                token_endpoint=issuer,  # what Authlib calls so is the audience
                alg=algorithm,
                header={"kid": key.kid, "typ": "client-authentication+jwt"},
                expires_in=60,
            )

    issuer, method = live.metadata()["issuer"], "private_key_jwt"
    with AuthlibSession(
        issued["client_id"],
        token_endpoint_auth_method=method,
        revocation_endpoint_auth_method=method,
    ) as client:
        client.register_client_auth_method(Signed(live.token_url))
        for _ in range(2):
            token = client.fetch_token(live.token_url, grant_type="client_credentials")
            claims = jwt.decode(token["access_token"], options={"verify_signature": False})
            assert claims["client_id"] == issued["client_id"]
        assert client.revoke_token(f"{live.service.url}{REVOKE}").status_code == 200


def test_the_metadata_name_the_method_and_its_algorithms(live: Live) -> None:
    metadata = live.metadata()
    for endpoint in ("token", "revocation"):
        assert "private_key_jwt" in metadata[f"{endpoint}_endpoint_auth_methods_supported"]
        algorithms = metadata[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]
        assert set(algorithms) == {*KEY_TYPES, "Ed25519"}
    assert "private_key_jwt" not in metadata["introspection_endpoint_auth_methods_supported"]


def test_requests_oauthlib_logs_in(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # loopback
    for include_client_id in (True, False, None):
        with OAuth2Session(client=BackendApplicationClient(live.client_id)) as session:
            token = session.fetch_token(
                live.token_url,
                client_id=live.client_id,
                client_secret=live.client_secret,
                include_client_id=include_client_id,
                headers={"onbehalfof": REPRESENTED},
            )
        claims = jwt.decode(token["access_token"], options={"verify_signature": False})
        assert claims["sub"] == REPRESENTED


def test_requests_oauthlib_shows_the_reason_of_a_refusal(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    sent = {"client_secret": live.client_secret, "headers": {"onbehalfof": "C9999999999"}}
    with (
        OAuth2Session(client=BackendApplicationClient(live.client_id)) as session,
        pytest.raises(OAuth2Error, match="represented taxpayer must grant it") as caught,
    ):
        session.fetch_token(live.token_url, include_client_id=True, **sent)
    assert "invalid_grant" in str(caught.value)


def test_myinvois_logs_in_for_itself_and_on_behalf(live: Live) -> None:
    with (
        httpx.Client() as http,
        closing(MyInvoisClient(live.client_id, live.client_secret)) as client,
    ):
        # Its address is built in; everything else is its own.
        client._token_manager = TokenManager(
            client_id=live.client_id,
            client_secret=live.client_secret,
            token_url=live.token_url,
            client=http,
        )
        own = client.login()
        client._token_manager.invalidate()
        on_behalf = client.login(on_behalf_of=REPRESENTED)
    assert jwt.decode(own, options={"verify_signature": False})["sub"] == TIN
    assert jwt.decode(on_behalf, options={"verify_signature": False})["sub"] == REPRESENTED


@pytest.fixture
def token(live: Live) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": live.client_id,
        "client_secret": live.client_secret,
    }
    answer = httpx.post(live.token_url, data=form, headers={"onbehalfof": REPRESENTED})
    body: dict[str, str] = answer.raise_for_status().json()
    return body["access_token"]


def test_pyjwt_verifies_the_token_by_the_published_metadata(live: Live, token: str) -> None:
    metadata = live.metadata()
    key = jwt.PyJWKClient(metadata["jwks_uri"]).get_signing_key_from_jwt(token)
    claims = jwt.decode(
        token, key, algorithms=["ES256"], audience="InvoicingAPI", issuer=metadata["issuer"]
    )
    assert claims["act"] == {"sub": TIN}
    assert claims["permissions"] == ["documents:submit"]


def test_joserfc_verifies_the_token_by_the_published_metadata(live: Live, token: str) -> None:
    decoded = joserfc_jwt.decode(token, KeySet.import_key_set(live.jwks()), algorithms=["ES256"])
    assert decoded.header["typ"] == "at+jwt"
    assert decoded.claims["iss"] == live.metadata()["issuer"]


def test_authlibs_rfc_9068_validator_accepts_the_token(live: Live, token: str) -> None:
    metadata, keys = live.metadata(), live.jwks()

    class Validator(JWTBearerTokenValidator):  # type: ignore[misc] # Authlib has no types
        def get_jwks(self) -> Any:
            return KeySet.import_key_set(keys)

    validator = Validator(issuer=metadata["issuer"], resource_server="InvoicingAPI")
    claims = validator.authenticate_token(token)
    validator.validate_token(claims, ["InvoicingAPI"], None)
    assert claims["client_id"] == live.client_id


def test_authlib_introspects_and_revokes(node: Service) -> None:
    party = Party(node)
    token = party.token()
    with AuthlibSession(
        *credentials(party.api).values(), token_endpoint_auth_method="client_secret_basic"
    ) as api:
        answer = api.introspect_token(f"{node.url}{INTROSPECT}", token=token)
        assert (answer.status_code, answer.json()["active"]) == (200, True)
        for method in ("client_secret_basic", "client_secret_post"):
            with AuthlibSession(
                *credentials(party.erp).values(), revocation_endpoint_auth_method=method
            ) as erp:
                ended = erp.revoke_token(f"{node.url}{REVOKE}", token=token)
                assert (ended.status_code, ended.content) == (200, b"")
        answer = api.introspect_token(f"{node.url}{INTROSPECT}", token=token)
        assert answer.json() == INACTIVE

    class Validator(IntrospectTokenValidator):  # type: ignore[misc]  # Authlib has no types
        def introspect_token(self, token_string: str) -> Any:
            return party.introspect(token_string)

    validator = Validator()
    other = party.token()
    validator.validate_token(validator.authenticate_token(other), ["InvoicingAPI"], None)
    assert validator.authenticate_token(other)["client_id"] == party.erp["client_id"]
