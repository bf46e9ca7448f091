"""`deploy/gunicorn.conf.py` with deadlines for which a test can wait."""

import runpy
from pathlib import Path

from identity.server import limits

globals().update(runpy.run_path(str(Path(__file__).parents[2] / "deploy" / "gunicorn.conf.py")))

limits.HEADER_SECONDS = limits.BODY_SECONDS = limits.WRITE_SECONDS = 2.5
limits.IDLE_SECONDS_WHEN_STOPPING = 3.0
timeout = 3
