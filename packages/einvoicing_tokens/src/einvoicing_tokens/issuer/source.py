"""Where the published facts come from: the identity service, or what was stored of it on disk."""

from dataclasses import dataclass

from einvoicing_tokens.issuer.clock import Clock
from einvoicing_tokens.issuer.folder import Folder
from einvoicing_tokens.issuer.http_client import HttpClient


@dataclass(frozen=True, slots=True)
class Source:
    """The service by HTTP, the clocks, and a folder for what it answered last, if there is one."""

    http: HttpClient
    clock: Clock
    folder: Folder | None = None

    def save(self, url: str, body: bytes) -> None:
        """Stores an answer that was right."""
        if self.folder is not None:
            self.folder.save(url, body)

    def load(self, url: str) -> tuple[bytes, float] | None:
        """The stored answer, and how many seconds ago it came."""
        return self.folder.load(url, self.clock.wall()) if self.folder is not None else None
