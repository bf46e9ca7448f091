"""A certificate that is its own authority."""

from pathlib import Path

from tests.servers.certificates import self_signed


def write_certificate(folder: Path, name: str = "localhost", days: int = 1) -> Path:
    """The file with the certificate and its key, for a server and for those that trust it."""
    files = self_signed(name, days=days).write(folder, name)
    file = Path(files[0])
    file.write_text("".join(Path(one).read_text() for one in files))
    return file
