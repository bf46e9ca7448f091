"""The admin of Django, whose pages are loaded where they are served or checked."""

import sys
from pathlib import Path

from django.contrib.admin import apps


class AdminConfig(apps.AdminConfig):
    """A command needs no page, and to load them all is half of the time of its start."""

    def ready(self) -> None:
        if Path(sys.argv[0]).name == "manage.py" and "check" not in sys.argv:
            apps.SimpleAdminConfig.ready(self)
        else:
            super().ready()
