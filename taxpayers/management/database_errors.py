"""An error of the database as one line for the person at the terminal (contract 6)."""

import os

from django.db import Error, InterfaceError, OperationalError

# Codes of PostgreSQL (appendix A): undefined_table, undefined_column.
_UNMIGRATED = {"42P01", "42703"}


def describe(fault: Error, consequence: str = "") -> str:
    """What is wrong, and what follows from it; one line, without any password."""
    line = (str(fault).strip().splitlines() or ["no reason given"])[0]
    if _is_unmigrated(fault, line):
        return "The database is not up to date. Run manage.py migrate, then this command again."
    what = "cannot be reached" if _is_out_of_reach(fault) else "refuses this"
    return f"The database {what}: {line.rstrip('.')}. {consequence}".rstrip()


def exit_code(fault: Error) -> int:
    """75 if the same command may work later, else 1."""
    passes = _is_out_of_reach(fault) and not _is_unmigrated(fault, str(fault).strip())
    return os.EX_TEMPFAIL if passes else 1


def _is_out_of_reach(fault: Error) -> bool:
    return isinstance(fault, OperationalError | InterfaceError)


def _is_unmigrated(fault: Error, line: str) -> bool:
    code = getattr(fault.__cause__, "sqlstate", None)
    return code in _UNMIGRATED or line.startswith(("no such table", "no such column"))
