"""deploy/conformance/: what the OpenID Foundation's suite is given fits the service as it runs.

The suite itself is not part of the tests. These do with its configuration what it does first: find
the metadata, log in by the login method of the plan, call the protected resource.
"""

import json
import stat
import sys
from typing import Any

import httpx
import pytest
from requests_oauth2client import DPoPToken, OAuth2Client, PrivateKeyJwt

from tests.real_clients.registered import Registered
from tests.servers.processes import CHECKOUT, completed

FOLDER = CHECKOUT / "deploy" / "conformance"


@pytest.fixture(scope="module")
def filled_in(registered: Registered, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The configuration of private_key_jwt with DPoP, as an operator makes it."""
    file = tmp_path_factory.mktemp("conformance") / "configuration.json"
    command = [sys.executable, str(FOLDER / "fill_in.py")]
    for wanted in (0, 1):  # what exists is not overwritten
        done = completed(
            [*command, registered.tin, str(file)], env={**registered.service.environment}
        )
        assert done.returncode == wanted, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    configuration: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return configuration


def test_it_finds_the_metadata_of_the_service_that_runs(
    registered: Registered, filled_in: dict[str, Any]
) -> None:
    url = filled_in["server"]["discoveryUrl"]
    metadata = httpx.get(url).raise_for_status().json()
    assert url == f"{metadata['issuer']}/.well-known/oauth-authorization-server"
    assert metadata == registered.metadata
    assert "private_key_jwt" in metadata["token_endpoint_auth_methods_supported"]
    assert "client_credentials" in metadata["grant_types_supported"]
    for name in ("client", "client2"):
        assert filled_in[name]["scope"] in metadata["scopes_supported"]
        (key,) = filled_in[name]["jwks"]["keys"]
        assert key["alg"] in metadata["token_endpoint_auth_signing_alg_values_supported"]
        assert {"kid", "d"} <= key.keys()
    assert filled_in["client"]["jwks"] != filled_in["client2"]["jwks"]


@pytest.mark.parametrize("name", ["client", "client2"])
def test_each_client_logs_in_and_calls_the_resource(
    registered: Registered, filled_in: dict[str, Any], name: str
) -> None:
    client = filled_in[name]
    (key,) = client["jwks"]["keys"]
    issuer = registered.metadata["issuer"]
    suite = OAuth2Client.from_discovery_endpoint(
        url=filled_in["server"]["discoveryUrl"],
        issuer=issuer,
        auth=PrivateKeyJwt(client["client_id"], key, alg=key["alg"], aud=issuer),
        dpop_bound_access_tokens=True,
        dpop_alg=client["dpop_signing_alg"],
        testing=True,  # the service of a test has no TLS
    )
    with suite.session as session:
        token = suite.client_credentials(scope=client["scope"])
        assert isinstance(token, DPoPToken)
        resource = session.get(filled_in["resource"]["resourceUrl"], auth=token, timeout=10)
    assert resource.status_code == 200
    assert resource.headers["Content-Type"].startswith("application/json")
    assert "Date" in resource.headers  # the suite asks for it (FAPI 2.0)
