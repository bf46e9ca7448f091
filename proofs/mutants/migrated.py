"""For pytest, in a run against a mutant: SQLite's test database is migrated once for all runs.

The migrations take ten times as long as the tests that notice a mutant.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3.creation import DatabaseCreation

# The copy, which the first run makes; without a path each run migrates for itself.
path: Path | None = None

_migrate = DatabaseCreation.create_test_db


def pytest_configure() -> None:
    DatabaseCreation.create_test_db = _create_test_db  # type: ignore[method-assign]


def _create_test_db(self: Any, *arguments: Any, **options: Any) -> str:
    if path is None or not path.exists():
        name = _migrate(self, *arguments, **options)
        if path is not None:
            unfinished = path.with_suffix(f".{os.getpid()}")
            _copy(name, unfinished)
            unfinished.replace(path)  # another run may look for it at this moment
        return name
    name = self._create_test_db(verbosity=0, autoclobber=True)
    _copy(path, name)
    self.connection.close()
    settings.DATABASES[self.connection.alias]["NAME"] = name
    self.connection.settings_dict["NAME"] = name
    return str(name)


def _copy(source: Path | str, target: Path | str) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
