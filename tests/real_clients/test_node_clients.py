"""oauth4webapi and openid-client, the OAuth libraries of Node.js, at the service as it runs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.introspection.api import INACTIVE, claims_of
from tests.real_clients.registered import WAYS, Client, Registered
from tests.servers.processes import ran

LIBRARIES = ("oauth4webapi", "openid_client")
SECONDS = 60.0
# `make test` runs each library once: with a key, and a token that is bound to one. Each takes a
# Node.js of its own.


def run(
    programs: Path,
    library: str,
    registered: Registered,
    client: Client,
    on_behalf_of: str = "",
    proofs: str = "",
) -> dict[str, Any]:
    """What the library returned to its user, or threw."""
    asked = {
        "issuer": registered.metadata["issuer"],
        "client_id": client.client_id,
        "client_secret": client.client_secret,
        "method": client.method,
        "private_jwk": client.pair and client.pair.private_jwk,
        "algorithm": client.pair and client.pair.algorithm,
        "headers": {"onbehalfof": on_behalf_of} if on_behalf_of else {},
        "api": registered.api,
        "is_bound": bool(proofs),
        "algorithm_of_proofs": proofs,
        "resource": f"{registered.service.url}/api/v1/me",
    }
    command, given = ["node", f"{library}.js"], json.dumps(asked)
    here = {"PATH": os.environ["PATH"]}
    told = ran(command, input=given, cwd=programs, env=here, timeout=SECONDS)
    returned: dict[str, Any] = json.loads(told)
    return returned


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_it_discovers_logs_in_introspects_and_revokes(
    programs: Path, registered: Registered, library: str, way: str
) -> None:
    client = registered.client(way)
    returned = run(programs, library, registered, client, registered.represented)
    assert "thrown" not in returned, returned["thrown"]
    assert registered.metadata.items() <= returned["metadata"].items()

    token = returned["token"]
    assert token["token_type"].lower() == "bearer"
    assert token["expires_in"] == 3600
    claims = registered.claims_on_behalf(token["access_token"], client)
    active = {"active": True, "token_type": "Bearer", **claims}
    assert returned["introspected"] == active
    assert returned["revoked"] == INACTIVE
    if library == "oauth4webapi":  # it also knows how to be a protected API
        assert returned["claims"] == claims
        assert returned["signed"] == active


@pytest.mark.parametrize(
    ("library", "proofs"),
    [
        *(("oauth4webapi", "ES256"), ("openid_client", "Ed25519")),
        ("oauth4webapi", "Ed25519"),
        ("openid_client", "ES256"),
    ],
)
def test_it_gets_a_token_that_is_bound_to_its_key_and_calls_an_api_with_it(
    programs: Path, registered: Registered, library: str, proofs: str
) -> None:
    client = registered.new_client("ES256")
    registered.service.manage("change_system_user", client.client_id, "--token-binding", "dpop")
    returned = run(programs, library, registered, client, registered.represented, proofs)
    assert "thrown" not in returned, returned["thrown"]
    token = returned["token"]
    assert token["token_type"].lower() == "dpop"
    assert claims_of(token["access_token"])["cnf"].keys() == {"jkt"}
    assert returned["resource"]["client_id"] == client.client_id
