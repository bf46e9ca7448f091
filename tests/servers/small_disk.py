"""A disk that can be full: a separate file system, in memory. It needs the right to mount."""

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.processes import NotAvailable, completed, new_folder

_CHUNK = 2**20


@dataclass(frozen=True)
class SmallDisk:
    folder: Path

    def fill(self) -> None:
        """Nothing more can be written on it. What a file has already, it keeps."""
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            for chunk in (_CHUNK, 4096):
                with contextlib.suppress(OSError):
                    while file.write(bytes(chunk)) == chunk:
                        pass

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def stop(self) -> None:
        self.free()
        subprocess.run(["umount", "--lazy", str(self.folder)], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def mount_small_disk(name: str, megabytes: int, user: str | None) -> SmallDisk:
    """A disk of this size that belongs to `user`. Raises NotAvailable where nobody may mount."""
    if os.geteuid() != 0:
        raise NotAvailable("a small disk cannot be mounted here: only root may do that")
    folder = new_folder(name, user)
    owner = f",uid={folder.stat().st_uid},gid={folder.stat().st_gid},mode=700"
    options = f"size={megabytes}m{owner}"
    mounted = completed(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)])
    if mounted.returncode:
        folder.rmdir()
        raise NotAvailable(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    return SmallDisk(folder)
