"""What was decided, read or signed cannot be changed afterwards, and shows no secret."""

import importlib
from dataclasses import is_dataclass
from typing import Any

import pytest

from tests.servers.processes import CHECKOUT

# Each stage of a login, and what it is made of (docs/architecture.md).
ROOMS = (
    *("taxpayers/credentials.py", "taxpayers/identifiers.py", "taxpayers/rules.py"),
    *("taxpayers/client_keys.py", "taxpayers/certificates", "taxpayers/facts"),
    *("tokens/access_tokens", "tokens/answers", "tokens/calls.py", "tokens/client_auth"),
    *("tokens/dpop", "tokens/explanation.py", "tokens/keys", "tokens/operations"),
    *("tokens/rate_limits", "tokens/refusals", "tokens/request"),
)


def values() -> dict[str, Any]:
    """Every dataclass of these rooms, by its name."""
    found = {}
    for room in ROOMS:
        path = CHECKOUT / room
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            module = ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
            for name, value in vars(importlib.import_module(module)).items():
                if is_dataclass(value) and getattr(value, "__module__", "") == module:
                    found[f"{module}.{name}"] = value
    return found


VALUES = values()


@pytest.mark.parametrize("name", VALUES)
def test_a_value_cannot_be_changed(name: str) -> None:
    assert VALUES[name].__dataclass_params__.frozen
