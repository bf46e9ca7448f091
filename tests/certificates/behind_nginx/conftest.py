"""The nodes behind the real nginx, as the tests of running services have them."""

import socket
from typing import Any

import pytest

from tests.servers.nginx import HOST, MTLS_NAME


@pytest.fixture(autouse=True)
def name_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to this machine, so that clients are used as in production."""
    look_up = socket.getaddrinfo

    def here(host: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up(HOST if host == MTLS_NAME else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", here)
