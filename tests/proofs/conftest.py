"""The clients of a run are made in the database of its service."""

from tests.live.conftest import databases_of_services

__all__ = ["databases_of_services"]
