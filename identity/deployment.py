"""What this process is: live or test, embedded or in production, its address, what it serves."""

import tomllib
from pathlib import Path
from typing import Literal

from identity.demo_address import demo_address
from identity.env import env, required_choice, secret, whole_number
from identity.private_files import private_folder

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = private_folder(Path(env.str("VAR_DIR", "") or BASE_DIR / "var"))

with (BASE_DIR / "pyproject.toml").open("rb") as _project:
    VERSION: str = tomllib.load(_project)["project"]["version"]

ENVIRONMENT: Literal["live", "test"]
ENVIRONMENT = required_choice("ENVIRONMENT", "test", ("live", "test"))  # type: ignore[assignment]  # one of these
DATABASE_URL = secret("DATABASE_URL", "")
# Without a DATABASE_URL the service is the embedded one of `make run`: its secrets are in var/.
# With one it is in production, and they must be given.
IS_EMBEDDED = not DATABASE_URL
# Only a trial works without ALLOWED_HOSTS and without a second factor.
IS_TRIAL = IS_EMBEDDED and ENVIRONMENT == "test"
PORT = whole_number("PORT", 8000, least=0, most=65_535)
# While a demo runs on the same data, commands in other shells use its address.
_DEMO_URL = demo_address(VAR_DIR) if IS_TRIAL and not env.str("PORT", "") else None
AUTH_URL = env.str("AUTH_URL", "") or _DEMO_URL or f"http://127.0.0.1:{PORT}"
IS_HTTPS = AUTH_URL.startswith("https://")
# The public login and the staff pages may run as separate processes: login, staff or both.
SERVE = required_choice("SERVE", "both", ("login", "staff", "both"))

# The server: the address that it listens on, its processes, the threads of each for Django's
# synchronous pages (and as many for its APIs), and how many logins and connections it has at once.
BIND = env.str("BIND", "") or "127.0.0.1"
WEB_PROCESSES = whole_number("WEB_PROCESSES", 2, most=256)
WEB_THREADS = whole_number("WEB_THREADS", 4, most=256)
WEB_REQUESTS = whole_number("WEB_REQUESTS", 256, most=100_000)
WEB_CONNECTIONS = whole_number("WEB_CONNECTIONS", 10_000, most=1_000_000)
