"""What a command is before it does anything: its version, its start, and what it must not do."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from identity.configuration.refused_commands import REFUSED_IN_LIVE
from identity.version import COMMIT, __version__
from tests.servers.processes import CHECKOUT, completed, free_port, run_python
from tests.servers.service import service_environment
from tests.support.command_line import manage

pytestmark = pytest.mark.processes


@pytest.mark.gate
def test_the_version_is_said_with_its_commit(tmp_path: Path) -> None:
    environment = service_environment(tmp_path, 0)
    assert manage(environment, "--version")[1] == f"{__version__} (commit {COMMIT})\n"
    said = json.loads(manage(environment, "version", "--json")[1])
    assert said == {"version": __version__, "commit": COMMIT}


@pytest.mark.gate
def test_one_version_is_in_every_file_of_a_release() -> None:
    chart = (CHECKOUT / "deploy/helm/identity/Chart.yaml").read_text()
    assert f'\nversion: {__version__}\nappVersion: "{__version__}"\n' in chart
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__


def test_an_archive_names_its_commit(tmp_path: Path) -> None:
    """Of a repository with this file, because that of the checkout may not have it yet."""
    (tmp_path / "identity").mkdir()
    for name in (".gitattributes", "identity/version.py", "pyproject.toml"):
        (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a commit -qm a"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    head = completed(["git", "rev-parse", "HEAD"], cwd=tmp_path).stdout
    archive = "git archive --prefix=out/ HEAD | tar -x && cd out && rm -rf ../.git"
    said = f"{sys.executable} -c 'from identity.version import COMMIT; print(COMMIT)'"
    done = completed(["bash", "-c", f"{archive} && {said}"], cwd=tmp_path)
    assert done.stdout == head != ""


def test_a_command_loads_no_page_and_check_loads_them_all(tmp_path: Path) -> None:
    """Half of the time of a start was for what a command never uses."""
    script = "import sys, runpy; sys.argv = {}\ntry: runpy.run_path('manage.py', None, '__main__')"
    script += "\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    environment = service_environment(tmp_path, 0)
    loaded = {}
    for command in ("settings", "check"):
        done = run_python(["-c", script.format(["manage.py", command])], environment)
        loaded[command] = set(done.stderr.splitlines()[-1].split())
    of_pages = {"identity.staff.admin", "identity.staff.registry.taxpayers", "tokens.checks"}
    of_pages.add("identity.staff.accounts.changes.sign_in")
    assert loaded["settings"].isdisjoint(of_pages)
    assert of_pages <= loaded["check"]


@pytest.mark.gate
@pytest.mark.parametrize("command", ["flush", "migrate"])
def test_what_harms_is_refused_in_live_before_the_database_is_asked(
    command: str, tmp_path: Path
) -> None:
    nowhere = "postgresql://identity@127.0.0.1:1/identity"
    environment = service_environment(tmp_path, 0, ENVIRONMENT="live", DATABASE_URL=nowhere)
    assert {"flush", "dumpdata", "diffsettings"} <= REFUSED_IN_LIVE.keys()
    arguments = ("taxpayers", "zero") if command == "migrate" else ()
    code, out, err = manage(environment, command, *arguments)
    assert (code, out) == (1, "")
    reason = REFUSED_IN_LIVE.get(command, "migrate goes forward only")
    assert reason in err


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = """
        source deploy/completion.bash
        answers() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _identity_commands; }
        compopt() { :; }
        answers ./manage.py revoke_s; printf '%s\\n' "${COMPREPLY[*]}"
        answers ./manage.py list --tax; printf '%s\\n' "${COMPREPLY[*]}"
        complete -p manage.py manage
    """
    environment = dict(service_environment(tmp_path, 0))
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = completed(["bash", "-c", script], cwd=CHECKOUT, env=environment)
    commands, options, *registered = done.stdout.splitlines()
    assert commands == "revoke_secret revoke_secrets"
    assert options == "--taxpayer="
    assert [line.split()[-1] for line in registered] == ["manage.py", "manage"]


REQUIREMENTS = """\
django==5.2.19 \\
    --hash=sha256:00
psycopg[binary]==3.3.9 \\
    --hash=sha256:00
tzdata==2026.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
"""


@pytest.mark.gate
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
