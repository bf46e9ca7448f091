"""The version of this service, as `pyproject.toml` has it."""

import tomllib
from functools import cache

from django.conf import settings


@cache
def version() -> str:
    """Read on first use."""
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        found: str = tomllib.load(file)["project"]["version"]
    return found
