"""Receivers on this machine: the loopback network is allowed."""

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pytest_django import Settings

if TYPE_CHECKING:
    from tests.webhooks.receiver import Receiver


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def receiver() -> Iterator["Receiver"]:
    from tests.webhooks.receiver import receiving

    with receiving() as started:
        yield started


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a port that refuses connections, and that no other program can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
