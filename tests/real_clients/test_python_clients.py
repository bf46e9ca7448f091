"""Authlib, requests-oauthlib, myinvois and PyJWT at the service as it runs."""

from contextlib import closing
from typing import Any

import httpx
import jwt
import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign
from authlib.oauth2.rfc7662 import IntrospectTokenValidator
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from joserfc.jwk import JWKRegistry, KeySet
from myinvois import MyInvoisClient
from myinvois.auth import TokenManager
from oauthlib.oauth2 import BackendApplicationClient
from oauthlib.oauth2.rfc6749.errors import OAuth2Error
from requests_oauthlib import OAuth2Session

from tests.introspection.api import INACTIVE, INTROSPECT, REVOKE, claims_of
from tests.real_clients.registered import ALGORITHMS, PERMISSION, SECRET_METHODS, Client, Registered
from tests.support.erp import PATH

pytestmark = pytest.mark.gate
GRANT = {"grant_type": "client_credentials"}


@pytest.fixture
def client(registered: Registered) -> Client:
    return registered.client("client_secret_post")


@pytest.fixture
def url(registered: Registered) -> str:
    return f"{registered.service.url}{PATH}"


@pytest.mark.parametrize("method", SECRET_METHODS)
def test_authlib_logs_in_on_behalf_with_either_client_authentication(
    registered: Registered, client: Client, url: str, method: str
) -> None:
    with AuthlibSession(
        client.client_id, client.client_secret, token_endpoint_auth_method=method
    ) as session:
        token = session.fetch_token(url, **GRANT, headers={"onbehalfof": registered.represented})
    assert (token["token_type"], token["expires_in"]) == ("Bearer", 3600)
    assert claims_of(token["access_token"])["sub"] == registered.represented


def test_authlibs_own_renewal_drops_onbehalfof_and_an_only_on_behalf_client_then_gets_no_token(
    registered: Registered, client: Client, url: str
) -> None:
    """What the guide says: its own fetch_token renews without the headers."""
    ended = {"access_token": "x", "token_type": "Bearer", "expires_at": 1}
    how, me = {**GRANT, "token_endpoint": url, "token": ended}, url.replace(PATH, "/api/v1/me")
    with AuthlibSession(client.client_id, client.client_secret, **how) as session:
        shown = session.get(me).json()
    assert (shown["subject"], shown["actor"]) == (registered.tin, None)
    issue = ("issue_credentials", registered.tin, "--name", "x", "--only-on-behalf")
    issued = registered.service.manage(*issue)
    with (
        AuthlibSession(issued["client_id"], issued["client_secret"], **how) as session,
        pytest.raises(OAuthError, match="onbehalfof"),
    ):
        session.get(me)


def test_authlib_shows_the_reason_of_a_refusal(client: Client, url: str) -> None:
    with (
        AuthlibSession(client.client_id, client.client_secret[:-4]) as session,
        pytest.raises(OAuthError, match=r"invalid_client.*cut off.*Reference: "),
    ):
        session.fetch_token(url, **GRANT)


# RFC 9864 calls the same algorithm Ed25519; FAPI 2 and its tests still name EdDSA.
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated:joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_authlib_logs_in_with_a_private_key(
    registered: Registered, url: str, algorithm: str
) -> None:
    client, issuer = registered.client(algorithm), registered.metadata["issuer"]
    assert client.pair
    key = JWKRegistry.import_key(client.pair.private_jwk)

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

    methods = dict.fromkeys(("token", "revocation"), client.method)
    names = {f"{name}_endpoint_auth_method": method for name, method in methods.items()}
    with AuthlibSession(client.client_id, **names) as session:
        session.register_client_auth_method(Signed(url))
        for _ in range(2):
            token = session.fetch_token(url, **GRANT)
            assert claims_of(token["access_token"])["client_id"] == client.client_id
        assert session.revoke_token(url.replace(PATH, REVOKE)).status_code == 200


def test_authlib_introspects_revokes_and_validates(
    registered: Registered, client: Client, url: str
) -> None:
    api = AuthlibSession(*registered.api.values(), token_endpoint_auth_method="client_secret_basic")
    how = {"revocation_endpoint_auth_method": "client_secret_basic"}
    with api, AuthlibSession(client.client_id, client.client_secret, **how) as erp:

        def introspected(token: str) -> Any:
            return api.introspect_token(url.replace(PATH, INTROSPECT), token=token).json()

        class Validator(IntrospectTokenValidator):  # type: ignore[misc]  # Authlib has no types
            def introspect_token(self, token_string: str) -> Any:
                return introspected(token_string)

        token = erp.fetch_token(url, **GRANT)["access_token"]
        active = Validator().authenticate_token(token)
        Validator().validate_token(active, ["InvoicingAPI"], None)
        assert active["client_id"] == client.client_id
        ended = erp.revoke_token(url.replace(PATH, REVOKE), token=token)
        assert (ended.status_code, ended.content) == (200, b"")
        assert introspected(token) == INACTIVE


def test_requests_oauthlib_logs_in_and_shows_the_reason_of_a_refusal(
    registered: Registered, client: Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # loopback

    def token(on_behalf_of: str, include_client_id: bool | None) -> str:
        with OAuth2Session(client=BackendApplicationClient(client.client_id)) as session:
            fetched = session.fetch_token(
                url,
                client_id=client.client_id,
                client_secret=client.client_secret,
                include_client_id=include_client_id,
                headers={"onbehalfof": on_behalf_of},
            )
        return str(fetched["access_token"])

    for include in (True, False, None):
        assert claims_of(token(registered.represented, include))["sub"] == registered.represented
    with pytest.raises(OAuth2Error, match=r"invalid_grant.*represented taxpayer must grant it"):
        token("C9999999999", True)


def test_myinvois_logs_in_for_itself_and_on_behalf(
    registered: Registered, client: Client, url: str
) -> None:
    of_client: Any = {"client_id": client.client_id, "client_secret": client.client_secret}
    with httpx.Client() as http, closing(MyInvoisClient(**of_client)) as user:
        # Its address is built in; everything else is its own.
        user._token_manager = TokenManager(**of_client, token_url=url, client=http)
        own = user.login()
        user._token_manager.invalidate()
        on_behalf = user.login(on_behalf_of=registered.represented)
    assert claims_of(own)["sub"] == registered.tin
    assert claims_of(on_behalf)["sub"] == registered.represented


def test_pyjwt_and_authlib_verify_a_token_by_the_published_metadata(
    registered: Registered, client: Client, url: str
) -> None:
    headers = {"onbehalfof": registered.represented}
    with AuthlibSession(client.client_id, client.client_secret) as session:
        token = session.fetch_token(url, **GRANT, headers=headers)["access_token"]
    jwks_uri, issuer = registered.metadata["jwks_uri"], registered.metadata["issuer"]
    key = jwt.PyJWKClient(jwks_uri).get_signing_key_from_jwt(token)
    claims = jwt.decode(token, key, algorithms=["ES256"], audience="InvoicingAPI", issuer=issuer)
    assert (claims["act"], claims["permissions"]) == ({"sub": registered.tin}, [PERMISSION])
    keys = KeySet.import_key_set(httpx.get(jwks_uri).raise_for_status().json())

    class Validator(JWTBearerTokenValidator):  # type: ignore[misc]  # Authlib has no types
        def get_jwks(self) -> Any:
            return keys

    validator = Validator(issuer=issuer, resource_server="InvoicingAPI")
    found = validator.authenticate_token(token)
    validator.validate_token(found, ["InvoicingAPI"], None)
    assert found["client_id"] == client.client_id
