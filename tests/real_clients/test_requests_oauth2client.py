"""requests_oauth2client at the service as it runs, with every way to log in that it knows."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from requests_oauth2client import (
    BaseClientAuthenticationMethod,
    ClientSecretBasic,
    ClientSecretPost,
    OAuth2Client,
    PrivateKeyJwt,
)

from tests.introspection.api import INACTIVE
from tests.real_clients.registered import WAYS, Client, Registered

METADATA = "/.well-known/oauth-authorization-server"


def authentication(client: Client, issuer: str) -> BaseClientAuthenticationMethod:
    if client.pair:
        # Unless told otherwise it sends the address of the endpoint as the audience.
        key, alg = client.pair.private_jwk, client.pair.algorithm
        return PrivateKeyJwt(client.client_id, key, alg=alg, aud=issuer)
    methods = {"client_secret_post": ClientSecretPost, "client_secret_basic": ClientSecretBasic}
    return methods[client.method](client.client_id, client.client_secret)


@contextmanager
def discovered(registered: Registered, client: Client) -> Iterator[OAuth2Client]:
    issuer = registered.metadata["issuer"]
    found = OAuth2Client.from_discovery_endpoint(
        url=f"{registered.service.url}{METADATA}",
        issuer=issuer,
        auth=authentication(client, issuer),
        testing=True,  # the service of a test has no TLS
    )
    with found.session:
        yield found


@pytest.mark.parametrize("way", WAYS)
def test_it_discovers_logs_in_introspects_and_revokes(registered: Registered, way: str) -> None:
    client = registered.client(way)
    api = Client(registered.api["client_id"], WAYS[0], registered.api["client_secret"])
    with discovered(registered, client) as erp, discovered(registered, api) as asking:
        headers = {"onbehalfof": registered.represented}
        token = erp.client_credentials(scope="InvoicingAPI", requests_kwargs={"headers": headers})
        assert (token.token_type, token.scope) == ("Bearer", None)
        assert token.expires_in in range(3590, 3601)  # seconds left
        claims = registered.claims_on_behalf(token.access_token, client)
        assert asking.introspect_token(token) == {"active": True, "token_type": "Bearer", **claims}
        assert erp.revoke_access_token(token) is True
        assert asking.introspect_token(token) == INACTIVE
