"""What this process is: live or test, embedded or in production, its address, what it serves."""

import os
from pathlib import Path
from typing import Literal

from django.core.exceptions import ImproperlyConfigured

from identity.demo_address import demo_address
from identity.env import read
from identity.private_files import private_folder
from identity.version import COMMIT as COMMIT, __version__

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = __version__
VAR_DIR = private_folder(Path(read("VAR_DIR") or BASE_DIR / "var"))

ENVIRONMENT: Literal["live", "test"] = read("ENVIRONMENT")
DATABASE_URL: str = read("DATABASE_URL")
if ENVIRONMENT == "live" and not DATABASE_URL:
    raise ImproperlyConfigured(
        "ENVIRONMENT is live, but there is no DATABASE_URL. Give the one of the service: with"
        " another database, an empty one too, a command would do harm."
    )
# Without a DATABASE_URL the service is the embedded one of `make run`: its secrets are in var/.
# With one it is in production, and they must be given.
IS_EMBEDDED = not DATABASE_URL
# Only a trial works without ALLOWED_HOSTS and without a second factor.
IS_TRIAL = IS_EMBEDDED and ENVIRONMENT == "test"
PORT: int = read("PORT")
# While a demo runs on the same data, commands in other shells use its address.
_DEMO_URL = demo_address(VAR_DIR) if IS_TRIAL and not os.environ.get("PORT") else None
AUTH_URL: str = read("AUTH_URL") or _DEMO_URL or f"http://127.0.0.1:{PORT}"
IS_HTTPS = AUTH_URL.startswith("https://")
SERVE: str = read("SERVE")
BIND: str = read("BIND")
WEB_PROCESSES: int = read("WEB_PROCESSES")
WEB_THREADS: int = read("WEB_THREADS")
WEB_REQUESTS: int = read("WEB_REQUESTS")
WEB_CONNECTIONS: int = read("WEB_CONNECTIONS")
