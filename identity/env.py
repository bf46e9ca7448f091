"""Where settings come from: the environment, files named by `…_FILE`, and `var/` (contract 6)."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from environs import Env

env = Env()


def whole_number(name: str, default: int, *, most: int) -> int:
    """The number `name`, from 1 to `most`. Raises ImproperlyConfigured for anything else."""
    text = env.str(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise ImproperlyConfigured(f"{name} must be a whole number from 1 to {most}, not {text!r}.")
    return int(text)


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
