"""This service as it was at an earlier commit, which ran on uWSGI, with the packages of then."""

import subprocess
from pathlib import Path

from bench.clients import Population
from bench.peers import Candidate, Missing, service
from bench.report import progress
from bench.servers import CHECKOUT, PROGRAMS, VAR, Server, run_python
from bench.session import Session
from bench.token_requests import SIGNED_TOKEN, taxpayer_login

# The commit fills its own database, with its own migrations and its own benchmark.
_FILL = (
    "import sys; from bench.clients import Population; from bench.registry import fill_postgres;"
    " fill_postgres(sys.argv[1], Population(int(sys.argv[2])))"
)


def candidate(revision: str) -> Candidate:
    """The login of that commit."""

    def start(session: Session, population: Population) -> Server:
        checkout = _check_out(revision)
        name, count = checkout.name.replace("-", "_"), population.taxpayers
        programs = checkout / ".venv" / "bin"

        def fill(url: str) -> None:
            for arguments in (["manage.py", "migrate", "-v0"], ["-c", _FILL, url, str(count)]):
                run_python(
                    *arguments, program=programs / "python", folder=checkout, DATABASE_URL=url
                )

        url = session.copy_of(f"{name}_{count}", fill, name)
        command = [str(programs / "pyuwsgi"), "--ini", "deploy/uwsgi.ini"]
        return service.start_on(session, name, url, command=command, checkout=checkout)

    return Candidate(f"before ({revision})", start, taxpayer_login, SIGNED_TOKEN, (16, 64))


def _check_out(revision: str) -> Path:
    """The folder with the files of that commit and their packages. Raises Missing."""
    try:
        commit = _run("git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"there is no commit {revision}") from error
    folder = VAR / f"before-{commit[:12]}"
    if not (folder / ".venv").exists():
        progress(f"installing {folder.name}, which later runs use again")
        folder.mkdir(parents=True, exist_ok=True)
        _run("tar", "-x", "-C", str(folder), stdin=_run("git", "archive", revision))
        try:
            _install(folder)
        except subprocess.CalledProcessError as error:
            raise Missing(f"its packages cannot be installed ({error})") from error
    return folder


def _install(folder: Path) -> None:
    uv, unfinished = str(PROGRAMS / "uv"), folder / ".venv-unfinished"
    python, lock = str(unfinished / "bin" / "python"), str(folder / "requirements.txt")
    _run(uv, "venv", "--quiet", "--clear", "--relocatable", str(unfinished))
    _run(uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", lock)
    unfinished.rename(folder / ".venv")


def _run(*command: str, stdin: bytes = b"") -> bytes:
    """The output. Raises CalledProcessError."""
    done = subprocess.run(command, cwd=CHECKOUT, input=stdin, stdout=subprocess.PIPE, check=True)
    return done.stdout
