"""Issuers for each test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.servers.processes import stopping

if TYPE_CHECKING:
    from tests.packages.issuer import Issuer


@pytest.fixture
def issuer() -> Iterator["Issuer"]:
    yield from _started()


@pytest.fixture
def other_issuer() -> Iterator["Issuer"]:
    """Another one, which a token or metadata may name."""
    yield from _started()


def _started() -> Iterator["Issuer"]:
    from tests.packages.issuer import start_issuer  # needs Django's settings

    issuer = start_issuer()
    with stopping(issuer):
        yield issuer
