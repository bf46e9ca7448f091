"""The running service with something registered, and the programs for Node.js."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.npm import install_locked
from tests.servers.service import Service

if TYPE_CHECKING:
    from tests.real_clients.registered import Registered


@pytest.fixture(scope="module")
def registered(node: Service, tmp_path_factory: pytest.TempPathFactory) -> "Registered":
    from tests.real_clients.registered import Registered

    return Registered(node, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "node"
    return install_locked(source, tmp_path_factory.mktemp("real-clients") / "node")
