"""Programs for Node.js with their packages: as locked, or the newest of a day."""

import shutil
from pathlib import Path

from tests.servers.processes import CHECKOUT, NotAvailable, completed

BEFORE = "2026-11-27"  # what needs no lock is taken as it was on this day


def install_locked(source: Path, folder: Path) -> Path:
    """A copy of a program for Node.js in a new folder, with its packages.

    Without a package-lock.json those of its package.json, and what these needed at BEFORE. Raises
    NotAvailable where there is no Node.js, or its packages cannot be installed.
    """
    name = source.relative_to(CHECKOUT)
    if not (shutil.which("node") and shutil.which("npm")):
        raise NotAvailable(f"node and npm are needed for {name}.")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("node_modules"))
    is_locked = (source / "package-lock.json").exists()
    command = ["ci"] if is_locked else ["install", "--no-package-lock", f"--before={BEFORE}"]
    done = completed(["npm", *command, "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)
    if done.returncode:
        shutil.rmtree(folder)
        raise NotAvailable(f"npm cannot install the packages of {name}: {done.stderr}")
    return folder
