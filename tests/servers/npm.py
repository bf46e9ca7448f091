"""Programs for Node.js with the packages that their package-lock.json names."""

import shutil
import subprocess
from pathlib import Path

from tests.servers.processes import CHECKOUT, NotAvailable


def install_locked(source: Path, folder: Path) -> Path:
    """A copy of a program for Node.js in a new folder, with its packages.

    Raises NotAvailable where there is no Node.js, or its packages cannot be installed.
    """
    name = source.relative_to(CHECKOUT)
    if not (shutil.which("node") and shutil.which("npm")):
        raise NotAvailable(f"node and npm are needed for {name}.")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("node_modules"))
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(install, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(folder)
        raise NotAvailable(f"npm cannot install the packages of {name}: {done.stderr}")
    return folder
