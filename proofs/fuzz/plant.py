"""Registers the client of a run at the running service."""

from collections.abc import Callable
from typing import Any

import httpx

from proofs.fuzz.planted import Planted
from taxpayers.credentials import new_client_secret


def plant(url: str, manage: Callable[..., Any]) -> Planted:
    """A new client of the service; `manage` is `manage.py` with its answer for machines."""
    own, other = "C1000000041", "C1000000049"
    manage("register_taxpayer", own, "--name", "Sample")
    manage("register_taxpayer", other, "--name", "Other")
    manage("register_intermediary", own)
    parties = ("--taxpayer", other, "--intermediary", own)
    manage("grant_permission", *parties, "--permission", "documents:submit")
    issued = manage("issue_credentials", own, "--name", "fuzz", "--logins-per-minute", "0")
    form = {name: issued[name] for name in ("client_id", "client_secret")}
    form["grant_type"] = "client_credentials"
    first, spare = (
        httpx.post(f"{url}/connect/token", data=form).json()["access_token"] for _ in range(2)
    )
    return Planted(
        client_id=form["client_id"].encode(),
        client_secret=form["client_secret"].encode(),
        wrong_secret=new_client_secret("test").encode(),
        access_token=first.encode(),
        represented=other.encode(),
        spare_token=spare.encode(),
    )
