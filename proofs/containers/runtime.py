"""Containers by crun: an unpacked image, run as in a production, without registry or daemon.

The root is read-only, the user a number without any capability, and only the volumes and /tmp can
be written. The network is that of the machine, on its loopback address.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.processes import (
    CHECKOUT,
    NotAvailable,
    completed,
    program_of,
    start_process,
    stop_process,
)

_NOTHING: dict[str, list[str]] = {
    kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
}
_MEMORY = ["nosuid", "nodev", "noexec"]


@dataclass(frozen=True)
class Image:
    """An image on the disk: its files, and what its configuration says about a process in it."""

    root: Path
    config: Mapping[str, Any]

    @property
    def user(self) -> tuple[int, int]:
        user, _, group = self.config["User"].partition(":")
        return int(user), int(group)

    @property
    def environment(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.config["Env"])


@dataclass
class Container:
    """A program in an image, with these settings; `volumes` are folders by their place in it."""

    image: Image
    folder: Path
    environment: Mapping[str, str]
    volumes: Mapping[str, Path]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return completed(self._prepared(command), timeout=120)

    def start(self, log: Path, ready: Callable[[], bool]) -> subprocess.Popen[bytes]:
        return start_process(self._prepared(self.image.config["Cmd"]), log, ready)

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """As a runtime stops it: the signal of the image, for its first process."""
        how = self.image.config.get("StopSignal", "SIGTERM")
        subprocess.run([*_crun(self.folder), "kill", self.folder.name, how], check=True)
        process.wait(25)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """At once, with all that runs in it: its processes are not children of `process`."""
        subprocess.run([*_crun(self.folder), "delete", "--force", self.folder.name], check=False)
        stop_process(process, signal.SIGKILL)

    def _prepared(self, command: Sequence[str]) -> list[str]:
        self.folder.mkdir(exist_ok=True)
        uid, gid = self.image.user
        given = {**self.image.environment, **self.environment}
        configuration = {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": uid, "gid": gid},
                "args": list(command),
                "env": [f"{name}={value}" for name, value in given.items()],
                "cwd": self.image.config.get("WorkingDir") or "/",
                "capabilities": _NOTHING,
                "noNewPrivileges": True,
            },
            "root": {"path": str(self.image.root), "readonly": True},
            "hostname": "container",
            "mounts": [
                _mount("/proc", "proc", "proc"),
                _mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755"),
                _mount("/dev/shm", "tmpfs", "shm", *_MEMORY, "mode=1777", "size=64m"),  # noqa: S108
                _mount("/tmp", "tmpfs", "tmpfs", *_MEMORY, "mode=1777", "size=64m"),  # noqa: S108
                *(
                    _mount(place, "bind", str(path), "bind", "rw" if path.is_dir() else "ro")
                    for place, path in self.volumes.items()
                ),
            ],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }
        (self.folder / "config.json").write_text(json.dumps(configuration))
        return [*_crun(self.folder), "run", "--bundle", str(self.folder), self.folder.name]


def _mount(place: str, kind: str, source: str, *options: str) -> dict[str, Any]:
    return {"destination": place, "type": kind, "source": source, "options": list(options)}


def _crun(folder: Path) -> list[str]:
    program = program_of("crun", "crun")
    # crun refuses a machine with both kinds of cgroups, although it needs neither: hidden from it.
    hidden = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
    as_seen = ["unshare", "--mount", "sh", "-c", hidden, "crun"]
    return [*as_seen, program, "--cgroup-manager=disabled", f"--root={folder.parent}/crun"]


CONTAINERFILE = CHECKOUT / "deploy" / "container" / "Containerfile"
_BASE = "localhost/debian-with-python:bookworm"
_PACKAGES = "python3,python3-venv,ca-certificates"
# Of the machine: how pip and apt reach their indexes.
_NETWORK = (
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/resolv.conf",
    "/opt/wheels",
)


class Builder:
    """Images in `folder`; what was built there before is used again."""

    def __init__(self, folder: Path) -> None:
        for program in ("buildah", "debootstrap", "crun"):
            program_of(program, program)
        if os.geteuid() != 0:
            raise NotAvailable("images are built as root only here: run this as root")
        self._folder = folder
        self._storage = [f"--root={folder}/storage", f"--runroot={folder}/run"]

    def build(self, target: str) -> Image:
        base = os.environ.get("CONTAINER_BASE") or self._debian()
        name = f"localhost/identity-{target}:test"
        shared = [f"--volume={path}:{path}:ro" for path in _NETWORK if Path(path).exists()]
        self._buildah(
            *("build", "--format=docker", "--isolation=chroot", "--network=host", *shared),
            *(f"--build-arg=BASE={base}", f"--target={target}", f"--tag={name}"),
            *(f"--file={CONTAINERFILE}", str(CHECKOUT)),
        )
        config: dict[str, Any] = json.loads(self._buildah("inspect", "--type=image", name))
        root = Path(self._buildah("mount", self._buildah("from", name)))
        return Image(root, config["Docker"]["config"])

    def clean(self) -> None:
        """Leaves only the base, which takes longest to make."""
        self._buildah("rm", "--all")
        for name in self._buildah("images", "--format={{.Name}}:{{.Tag}}").splitlines():
            if name != _BASE and "<none>" not in name:
                self._buildah("rmi", "--force", name)
        self._buildah("rmi", "--prune", "--force")

    def _debian(self) -> str:
        if self._buildah("images", "--quiet", "--filter", f"reference={_BASE}"):
            return _BASE
        files = self._folder / "base"
        _run("debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(files))
        container = self._buildah("from", "scratch")
        self._buildah("add", "--quiet", container, str(files), "/")
        self._buildah("commit", "--quiet", "--rm", container, _BASE)
        shutil.rmtree(files)
        return _BASE

    def _buildah(self, *arguments: str) -> str:
        return _run("buildah", "--storage-driver=vfs", *self._storage, *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=sys.stderr, check=True)
    return done.stdout.decode().strip()
