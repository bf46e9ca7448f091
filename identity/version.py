"""Which version this is: that of pyproject.toml, and the commit that it was made of."""

import json
import tomllib
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent
_ARCHIVED = "$Format:%H$"  # `git archive`, and so `make release`, writes it here (.gitattributes)

with (_CHECKOUT / "pyproject.toml").open("rb") as _project:
    __version__: str = tomllib.load(_project)["project"]["version"]


def _commit() -> str:
    if not _ARCHIVED.startswith("$"):
        return _ARCHIVED
    git = _CHECKOUT / ".git"
    try:  # not by git, which refuses the checkout of another user
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref: ")
        return head if name == head else (git / name).read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


COMMIT = _commit()


def version_line(*, as_json: bool) -> str:
    """What `manage.py version` says."""
    if as_json:
        return json.dumps({"version": __version__, "commit": COMMIT})
    return f"{__version__} (commit {COMMIT})"
