"""A machine as operators have it: its files, units and commands, as the runbooks use them."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, changed, completed, free_port, stopping
from tests.servers.service import Service, start_service

ISSUER = "http://id.example.org"
RELEASES = "https://releases.example.org/identity"
# Programs that need root or the network. The libraries of a version are those of this checkout.
_STUBS = {
    "sudo": 'shift 2; exec "$@"',
    "make": f'echo "make $@" >>"$MACHINE/calls"; cd "${{2:-.}}"; ln -sfn "{CHECKOUT}/.venv" .venv',
    "systemctl": f'exec {sys.executable} -P {Path(__file__).with_name("systemctl.py")} "$@"',
    **dict.fromkeys(("useradd", "editor", "nginx", "promtool"), ":"),
}
_FOLDERS = (
    "etc/systemd/system",
    "etc/nginx/conf.d",
    "opt",
    "usr/local/lib",
    "var/backups/identity",
    "var/lib",
)


@dataclass
class Machine:
    folder: Path
    postgres: Postgres
    database_url: str

    def __post_init__(self) -> None:
        for name in (*_FOLDERS, "bin", "releases"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name, commands in _STUBS.items():
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/sh\n{commands}\n")
            program.chmod(0o755)

    @property
    def settings(self) -> Path:
        return self.folder / "etc/identity/identity.env"

    @property
    def version(self) -> str:
        return (self.folder / "opt/identity").readlink().name

    def calls(self) -> list[str]:
        """What systemd was told since the last time."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def release(self, version: str, *, last_words: str = "") -> Path:
        """A signed release of this checkout; its server says `last_words` when it is started."""
        folder, root = self.folder / "releases", self.folder / "releases" / f"identity-{version}"
        shutil.copytree(CHECKOUT / "deploy", root / "deploy", symlinks=True)
        if last_words:
            (root / "deploy/gunicorn.conf.py").write_text(f"raise SystemExit({last_words!r})\n")
        for path in CHECKOUT.iterdir():
            if path.name not in ("deploy", ".venv", ".git", "var"):
                (root / path.name).symlink_to(path)
        with tarfile.open(folder / f"{root.name}.tar.gz", "w:gz", compresslevel=1) as archive:
            archive.add(root, root.name)
        shutil.rmtree(root)
        self.run(
            "cd releases; [ -e key ] || ssh-keygen -q -t ed25519 -N '' -f key\n"
            "sha256sum *.tar.gz > SHA256SUMS; rm -f SHA256SUMS.sig\n"
            "ssh-keygen -q -Y sign -n file -f key SHA256SUMS\n"
            'echo "identity-releases $(cat key.pub)" > release_signers'
        )
        return folder

    def install(self) -> None:
        program, settings, secrets, *_ = blocks_of("Install")
        releases = self.release("1.0.0")
        self.run(f"cd {releases}\n{program.replace('VERSION', '1.0.0')}{settings}")
        self.write_settings(
            ENVIRONMENT="test",
            AUTH_URL=ISSUER,
            STAFF_URL="http://staff.example.org",
            ALLOWED_HOSTS="id.example.org,staff.example.org,127.0.0.1",
        )
        self.run(secrets)

    def write_settings(self, **more: str) -> None:
        own = {
            "DATABASE_URL": self.database_url,
            "SECRET_KEY_FILE": str(self.settings.with_name("secret_key")),
            "KEY_ENCRYPTION_KEYS_FILE": str(self.settings.with_name("key_encryption_keys")),
            "VAR_DIR": str(self.folder / "var/lib/identity"),
        }
        given = (own | more).items()
        lines = [(rf"^{name}=.*$", f"{name}={value}") for name, value in given]
        self.settings.write_text(changed(FILE.read_text(encoding="utf-8"), *lines))

    def run(self, commands: str, **variables: str) -> str:
        done = self.tried(commands, **variables)
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def tried(self, commands: str, **variables: str) -> subprocess.CompletedProcess[str]:
        commands = commands.replace(RELEASES, f"file://{self.folder}/releases")
        commands = re.sub(r"(?<![\w./])/(etc|opt|usr/local|var)\b", rf"{self.folder}/\1", commands)
        for option, number in (("-o", os.getuid()), ("-g", os.getgid()), ("chgrp", os.getgid())):
            commands = commands.replace(f"{option} identity ", f"{option} {number} ")
        path = [str(self.folder / "bin"), str(self.postgres.programs), os.environ["PATH"]]
        return completed(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env={
                "PATH": ":".join(path),
                "MACHINE": str(self.folder),
                "UNITS": str(self.folder / "usr/local/lib/systemd/system"),
                "IDENTITY_ENV": str(self.settings),
                "NODE_EXPORTER_DIR": str(self.folder),
                "DATABASE_URL": self.database_url,
                **variables,
            },
            stdin=subprocess.DEVNULL,
        )

    @contextmanager
    def running(self) -> Iterator[Service]:
        port = free_port()
        environment = {"PATH": os.environ["PATH"], **assignments(self.settings)}
        environment |= {"PORT": str(port), "SERVE": "both", "WEB_PROCESSES": "1"}
        node = start_service(environment, self.folder / f"node-{port}.log")
        with stopping(node):
            yield node


FOLDER = CHECKOUT / "deploy" / "systemd"


def commands_of(unit: str) -> list[str]:
    text = (FOLDER / unit).read_text(encoding="utf-8")
    return re.findall(r"^ExecStart(?:Pre)?=(.+)$", text, re.MULTILINE)


DOCUMENT = CHECKOUT / "docs" / "operations.md"


def blocks_of(heading: str, *, document: Path = DOCUMENT) -> list[str]:
    """The blocks of commands below this heading, up to the next one of its level or above."""
    text = document.read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.MULTILINE)
    assert found, f"{document.name} has no section {heading!r}"
    section = re.split(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], flags=re.MULTILINE)[0]
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    return [dedent(block) for block in blocks]


FILE = CHECKOUT / "deploy" / "identity.env"
_LINE = re.compile(r"^(#?)([A-Z][A-Z_]*)=(.*)$", re.MULTILINE)


def assignments(path: Path = FILE, *, with_comments: bool = False) -> dict[str, str]:
    return {
        name: value[1:-1] if value.startswith("'") else value
        for comment, name, value in _LINE.findall(path.read_text(encoding="utf-8"))
        if with_comments or not comment
    }
