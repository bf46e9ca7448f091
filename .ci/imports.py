"""Import every module of the service that this process installs: nothing may need more than that.

`.ci/run` calls it where only `requirements.txt` is installed, for SERVE=both and SERVE=login.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("identity", "tokens", "taxpayers")


def main() -> int:
    """The number of modules that cannot be imported; each with its reason on stderr."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    import django

    django.setup()
    from django.apps import apps

    names, failed = list(modules()), 0
    for app in ("identity.staff", "identity.api", "identity.webhooks"):
        if not apps.is_installed(app):
            names = [name for name in names if not name.startswith(f"{app}.")]
    # What these import is in requirements-traces.txt.
    names = [name for name in names if not name.startswith("identity.traces.")]
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - whatever a module raises is what we look for
            failed += 1
            sys.stderr.write(f"{name}: {traceback.format_exc(limit=-1)}")
    sys.stdout.write(f"{len(names)} modules, {failed} of them cannot be imported\n")
    return failed


def modules() -> Iterator[str]:
    """The names of all modules in the rooms, found without importing one."""
    for room in ROOMS:
        for path in sorted(Path(room).rglob("*.py")):
            yield ".".join(path.with_suffix("").parts).removesuffix(".__init__")


if __name__ == "__main__":
    sys.exit(min(main(), 1))
