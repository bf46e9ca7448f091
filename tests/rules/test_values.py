"""What was decided, read or signed cannot be changed afterwards, and shows no secret."""

import importlib
from dataclasses import is_dataclass
from typing import Any

import pytest

from taxpayers.value import Value
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
    """Every dataclass and value of these rooms, by its name."""
    found = {}
    for room in ROOMS:
        path = CHECKOUT / room
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            module = ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
            for name, value in vars(importlib.import_module(module)).items():
                if _is_value(value) and getattr(value, "__module__", "") == module:
                    found[f"{module}.{name}"] = value
    return found


def _is_value(found: Any) -> bool:
    return is_dataclass(found) or (isinstance(found, type) and issubclass(found, Value))


VALUES = values()


@pytest.mark.parametrize("name", VALUES)
def test_a_value_cannot_be_changed(name: str) -> None:
    value = VALUES[name]
    parameters = "__dataclass_params__" if is_dataclass(value) else "__struct_config__"
    assert getattr(value, parameters).frozen
