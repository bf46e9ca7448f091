"""What the identity service answered last, stored on disk: for an API that starts while it is away.

Lists are signed, and read as if they came now. Keys and metadata count as old as their files.
"""

import hashlib
import logging
import os
import tempfile
from pathlib import Path

logger = logging.getLogger("einvoicing_tokens")

_MAX_FILES = 128
_MAX_BYTES = 4 * 1024 * 1024


class Folder:
    """One directory for one API, which only its user can write to. It is made if it is missing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, url: str, body: bytes) -> None:
        """Stores the answer of this address instead of the last one. A fault is only logged."""
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._file(url)
            if not file.exists() and len(list(self._path.iterdir())) >= _MAX_FILES:
                return
            handle, name = tempfile.mkstemp(dir=self._path)  # only its user can read it
            try:
                with os.fdopen(handle, "wb") as temporary:
                    temporary.write(body)
                Path(name).replace(file)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s cannot be stored in %s: %s", url, self._path, error.strerror)

    def load(self, url: str, now: float) -> tuple[bytes, float] | None:
        """What was stored of this address, and how many seconds ago; None if that cannot be used.

        `now`: Unix seconds.
        """
        file = self._file(url)
        try:
            about = file.stat()
            is_safe = about.st_uid == os.geteuid() and not about.st_mode & 0o022
            age = now - about.st_mtime
            if not is_safe or age < 0 or about.st_size > _MAX_BYTES:
                logger.warning("%s is not used: other users can write to it, or its date", file)
                return None
            return file.read_bytes(), age
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.warning("%s cannot be read: %s", file, error.strerror)
            return None

    def _file(self, url: str) -> Path:
        return self._path / hashlib.sha256(url.encode()).hexdigest()
