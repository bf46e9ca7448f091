"""For pytest, in a run against a mutant: tests in the order of the plan, and always alike."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings


def pytest_configure() -> None:
    # A slow machine fails no test here, or a mutant would seem to be killed; nor may an example
    # that one mutant failed be tried again in the next ordinary run.
    settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),  # nobody reads the smallest example
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    place = {item: number for number, item in enumerate(items)}
    try:
        return (yield)
    finally:
        items.sort(key=lambda item: (_needs_a_database(item), place[item]))


def _needs_a_database(item: Any) -> bool:
    names = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    return bool(names) or item.get_closest_marker("django_db") is not None
