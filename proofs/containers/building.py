"""Builds `deploy/container/Containerfile` by buildah, without a daemon and without a registry.

The base is a Debian of its own, made by debootstrap; CONTAINER_BASE names another one, such as the
one of the Containerfile, where a registry can be reached.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from proofs.containers.runtime import Image
from tests.servers.processes import CHECKOUT, NotAvailable

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
            if shutil.which(program) is None:
                raise NotAvailable(f"no {program} here (Debian: apt install {program})")
        if os.geteuid() != 0:
            raise NotAvailable("images are built as root only here: run this as root")
        self._folder = folder
        self._storage = [f"--root={folder}/storage", f"--runroot={folder}/run"]

    def build(self, target: str) -> Image:
        """That stage of the Containerfile, unpacked."""
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
