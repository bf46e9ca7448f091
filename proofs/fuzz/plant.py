"""Registers the clients of a run at the running service."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from proofs.fuzz.planted import KEY_NAME, LOGIN_PATH, Planted, proof
from proofs.fuzz.signed.certificates import SUBJECT
from proofs.fuzz.signed.signer import RIGHT
from taxpayers.credentials import new_client_secret


def plant(url: str, manage: Callable[..., Any]) -> Planted:
    """New clients of the running service; `manage` is `manage.py` with its answer for machines.

    The service must take certificates.
    """
    own, other = "C1000000041", "C1000000049"
    manage("register_taxpayer", own, "--name", "Sample")
    manage("register_taxpayer", other, "--name", "Other")
    manage("register_intermediary", own)
    parties = ("--taxpayer", other, "--intermediary", own)
    manage("grant_permission", *parties, "--permission", "documents:submit")
    names = ("secret", "key", "bound", "certificate")
    first, with_key, bound, with_certificate = (_client(own, name, manage) for name in names)
    with TemporaryDirectory() as folder:
        keys = Path(folder) / "keys.json"
        keys.write_text(json.dumps(json.loads(RIGHT.jwk) | {"kid": KEY_NAME}))
        _change(with_key, manage, "--auth-method", "private_key_jwt", "--jwks", str(keys))
    _change(with_certificate, manage, "--auth-method", "tls_client_auth", "--subject-dn", SUBJECT)
    _change(bound, manage, "--token-binding", "dpop")
    planted = Planted(
        client_id=first["client_id"].encode(),
        client_secret=first["client_secret"].encode(),
        wrong_secret=new_client_secret("test").encode(),
        access_token=_token(url, first),
        represented=other.encode(),
        spare_token=_token(url, first),
        key_client_id=with_key["client_id"].encode(),
        bound_client_id=bound["client_id"].encode(),
        bound_secret=bound["client_secret"].encode(),
        bound_token=b"",
        tls_client_id=with_certificate["client_id"].encode(),
        issuer=url,
    )
    return replace(planted, bound_token=_bound_token(url, bound, planted))


def _client(tin: str, name: str, manage: Callable[..., Any]) -> dict[str, str]:
    issued = manage("issue_credentials", tin, "--name", name, "--logins-per-minute", "0")
    return {name: issued[name] for name in ("client_id", "client_secret")}


def _change(client: dict[str, str], manage: Callable[..., Any], *options: str) -> None:
    manage("change_system_user", client["client_id"], *options, "--reason", "fuzz")


def _token(url: str, client: dict[str, str], **headers: str) -> bytes:
    form = {"grant_type": "client_credentials", **client}
    answer = httpx.post(f"{url}{LOGIN_PATH}", data=form, headers=headers)
    token: str = answer.json()["access_token"]
    return token.encode()


def _bound_token(url: str, client: dict[str, str], planted: Planted) -> bytes:
    form = {"grant_type": "client_credentials", **client}
    first = httpx.post(f"{url}{LOGIN_PATH}", data=form, headers={"DPoP": _proof(planted, "0")})
    planted.learned.nonce = first.headers["DPoP-Nonce"]
    return _token(url, client, DPoP=_proof(planted, "1"))


def _proof(planted: Planted, digit: str) -> str:
    return planted.fill(proof(digit * 16)).decode()
