"""A list of what a production contains, or of its known weaknesses, is whole or an error."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.servers.processes import CHECKOUT, completed, free_port, run_python

REQUIREMENTS = """\
django==5.2.19 \\
    --hash=sha256:00
psycopg[binary]==3.3.9 \\
    --hash=sha256:00
tzdata==2026.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
"""


@pytest.mark.parametrize(
    ("packages", "code", "says"),
    [
        ({"Django": "5.2.19", "psycopg": "3.3.9"}, 0, ""),
        ({"Django": "5.2.19", "psycopg": "3.3.9", "tzdata": "2026.6"}, 0, ""),
        ({"Django": "5.2.19"}, 1, "lacks psycopg 3.3.9"),
        ({"Django": "5.2.18", "psycopg": "3.3.9"}, 1, "lacks django 5.2.19"),
        ({"Django": "5.2.19", "psycopg": "3.3.9", "pytest": "9"}, 1, "has pytest 9, which"),
        ({}, 1, "lacks django 5.2.19"),
    ],
)
def test_a_bill_of_materials_with_gaps_is_refused(
    packages: dict[str, str], code: int, says: str, tmp_path: Path
) -> None:
    bill, requirements = tmp_path / "sbom.json", tmp_path / "requirements.txt"
    components = [{"name": name, "version": version} for name, version in packages.items()]
    bill.write_text(json.dumps({"components": components}))
    requirements.write_text(REQUIREMENTS)
    done = run_python([".ci/sbom.py", str(bill), str(requirements)], os.environ)
    assert done.returncode == code
    assert says in done.stderr


@pytest.mark.processes
def test_an_audit_that_cannot_read_its_data_is_not_taken_for_success(tmp_path: Path) -> None:
    unreachable = f"http://127.0.0.1:{free_port()}"
    proxies = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        **dict.fromkeys((*proxies, *map(str.lower, proxies)), unreachable),
        "NO_PROXY": "",
        "no_proxy": "",
        "PIP_CACHE_DIR": str(tmp_path),  # of earlier audits
        "XDG_CACHE_HOME": str(tmp_path),
    }
    make = shutil.which("make")
    assert make
    # The environment that runs this test is installed already.
    command = [make, "--assume-old=.venv/.dev-installed", "audit"]
    done = completed(command, cwd=CHECKOUT, env=environment)
    assert done.returncode != 0
    assert "NOT AUDITED: the list of known weaknesses could not be read." in done.stderr
