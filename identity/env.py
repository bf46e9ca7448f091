"""Where settings come from: the environment, files named by `…_FILE`, and `var/` (contract 6)."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from environs import Env

env = Env()

# One line for each setting that has a wrong value: `manage.py check` shows them all, and the server
# does not start. Other commands go on with the default.
wrong_settings: list[str] = []


def whole_number(name: str, default: int, *, most: int, least: int = 1) -> int:
    """The number `name`; for anything but `least` to `most` the default, and a wrong setting."""
    text = env.str(name, "") or str(default)
    if len(text) <= len(str(most)) and text.isascii() and text.isdigit():
        number = int(text)
        if least <= number <= most:
            return number
    wrong_settings.append(f"{name} must be a whole number from {least} to {most}, not {text!r}.")
    return default


def secret(name: str, default: str | None = None) -> str | None:
    """The secret `name`, or the content of the file that `<name>_FILE` names.

    Raises ImproperlyConfigured if both are given, or if the file cannot be read or is empty.
    """
    value, path = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and path:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    if not path:
        return value or default
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error.strerror}.") from None
    if not text:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is empty.")
    return text


def saved_secret(path: Path) -> str:
    """A random secret, stored in the file `path` on first use and readable only by its owner.

    For the embedded start only. Of processes that start together one creates it, and all read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)  # fails if another process was first: its secret counts
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text(encoding="utf-8").strip()
