"""Programs that fetch a token, one for each language of ERP systems: files of this folder."""

from dataclasses import dataclass
from pathlib import Path

AUTH_URL_OF_THE_FILES = "http://127.0.0.1:8000"

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Snippet:
    """A file of this folder; `needs` is what it runs with, `run` how it is started."""

    name: str
    file: str
    needs: str
    run: str

    @property
    def id(self) -> str:
        """For the parts of the page that belong to it."""
        return self.name.lower().replace("#", "sharp").replace(".", "")


SNIPPETS = (
    Snippet("curl", "token_client.sh", "curl 7.76", "sh token_client.sh"),
    Snippet("Python", "token_client.py", "Python 3.9, requests", "python token_client.py"),
    Snippet("Node.js", "token_client.mjs", "Node.js 18", "node token_client.mjs"),
    Snippet("Java", "TokenClient.java", "Java 17", "java TokenClient.java"),
    Snippet("C#", "TokenClient.cs", ".NET 8", "dotnet run"),
    Snippet("PHP", "token_client.php", "PHP 8 with curl", "php token_client.php"),
    Snippet("ABAP", "z_token_client.abap", "SAP NetWeaver 7.50", "SE38"),
)


def source_of(snippet: Snippet, auth_url: str) -> str:
    """The program for the service at this address."""
    text = (_FOLDER / snippet.file).read_text(encoding="utf-8")
    return text.replace(AUTH_URL_OF_THE_FILES, auth_url)
