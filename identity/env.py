"""Where settings come from: the environment, files named by `…_FILE`, and `var/` (contract 6)."""

import os
import secrets
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from identity.configuration.kinds import WrongValue
from identity.configuration.setting_list import SETTINGS, Setting

# The environment is full of the names of others: only long ones are compared, and only near ones.
_SHORTEST, _SIMILARITY = 6, 0.85


def describe_unknown_names(names: Iterable[str], known: Mapping[str, Setting]) -> list[str]:
    """One line for each of `names` that is not known and looks like one that is."""
    return [line for name in sorted(names) if (line := _describe(name, known))]


def _describe(name: str, known: Mapping[str, Setting]) -> str:
    stem = name.removesuffix("_FILE")
    if name in known or (stem in known and known[stem].is_secret):
        return ""
    if stem in known:
        return f"{name} is not read: only secrets can be in a file. Set {stem} instead."
    long = [known_name for known_name in known if len(known_name) >= _SHORTEST]
    if len(stem) < _SHORTEST:
        return ""
    near = get_close_matches(stem, long, n=1, cutoff=_SIMILARITY)
    return f"{name} is not a setting, and is not read. Did you mean {near[0]}?" if near else ""


# One line each: `manage.py check` shows them, the server does not start, other commands go on.
wrong_settings: list[str] = []
# And for each name that is none, but looks like one: `check --deploy` and the server name it.
unknown_settings = describe_unknown_names(os.environ, SETTINGS)


def read(name: str, default: Any = None) -> Any:
    """The value of the setting `name`: of the environment, or `default`, or that of its row.

    An empty text is the default. A wrong one is a wrong setting, and the default. Where the default
    would be dangerous, both are ImproperlyConfigured.
    """
    setting = SETTINGS[name]
    text = secret(name) if setting.is_secret else os.environ.get(name)
    if text or (text is not None and setting.is_vital):
        try:
            return setting.read(text)
        except WrongValue as fault:
            line = f"{name} {fault} Example: {setting.assignment}"
        if setting.is_vital:
            raise ImproperlyConfigured(line)
        wrong_settings.append(line)
    return setting.read(setting.default) if default is None else default


def secret(name: str) -> str:
    """The value, or that of the file in `<name>_FILE`; empty: none. Raises ImproperlyConfigured."""
    value, path = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and path:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
    if path is None:
        return value or ""
    if not path:
        raise ImproperlyConfigured(f"{name}_FILE is empty: name the file, or leave it out.")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}_FILE: cannot read {path}: {error.strerror}. Create it, readable by the user of"
            " the service: docs/operations.md, Install."
        ) from None
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is not a text in UTF-8.") from None
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
