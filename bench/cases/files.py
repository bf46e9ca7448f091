"""`files`: an import of new taxpayers and an export of all: how long, and how much memory."""

import csv
import time

import httpx

from bench import targets
from bench.clients import Population, tin
from bench.peers import service
from bench.processes import busiest, private_bytes
from bench.report import Table, progress
from bench.servers import run_python
from bench.session import Session
from bench.targets import Target

_EXPORT = "/admin/taxpayers/taxpayer/export.csv"


def run(session: Session, users: int = 1_000_000, rows: int = 100_000) -> list[Table]:
    """An import of --rows new taxpayers by the command, and an export of all of them as CSV."""
    url = session.copy_of_registry(Population(users), "files")
    imported = _import(session, url, rows)
    exported = _export(session, url, users + rows)
    note = f"Taxpayers; {users:,} were registered. Memory: what the process shares with none."
    measured: list[tuple[Target, float | None]] = [
        (Target(f"import of {rows:,} rows by the command", 8, 4, "s", decimals=1), imported),
        (Target(f"export of {users + rows:,} rows", 20, 10, "s", decimals=1), exported[0]),
        (Target("memory of its process", 150, 75, "MB", decimals=0), exported[1]),
    ]
    return [targets.table("files", measured, note)]


def _import(session: Session, url: str, rows: int) -> float:
    """Seconds of the command, with the start of its process."""
    file = session.folder / "import.csv"
    with file.open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(("tin", "name"))
        writer.writerows((tin(9_000_000_000 + n), f"Imported {n}") for n in range(rows))
    started = time.perf_counter()
    run_python("manage.py", "import_registry", str(file), DATABASE_URL=url)
    seconds = time.perf_counter() - started
    progress(f"import: {seconds:.1f} s")
    return seconds


def _export(session: Session, url: str, rows: int) -> tuple[float, float]:
    """Seconds from the request to the last byte, and the most private MB of its worker."""
    server = service.start_on(session, "files", url, SERVE="staff", WEB_PROCESSES="1")
    cookie = run_python("-m", "bench.cases.staff_session", DATABASE_URL=url)
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.20.0.14", "Cookie": cookie}
    address = f"http://127.0.0.1:{server.port}{_EXPORT}"
    lines = peak = 0
    started = time.perf_counter()
    with httpx.stream("GET", address, headers=headers, timeout=60) as answer:
        if answer.status_code != 200:
            raise RuntimeError(f"the export failed: {answer.status_code} {answer.headers}")
        for number, chunk in enumerate(answer.iter_raw(1 << 16)):
            lines += chunk.count(b"\n")
            if number % 32 == 0:
                peak = max(peak, *map(private_bytes, busiest(server.pid, 1)))
    seconds = time.perf_counter() - started
    if lines <= rows:  # there are intermediaries, too
        raise RuntimeError(f"{lines} lines, and not more than {rows}")
    progress(f"export: {seconds:.1f} s")
    return seconds, peak / 2**20
