#!/usr/bin/env python
"""Commands of the service: `manage.py help` lists them."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import Error

from identity.configuration.refused_commands import REFUSED_IN_LIVE
from identity.management_api import demo_scopes
from identity.version import version_line
from taxpayers.management.database_errors import describe, exit_code

if __name__ == "__main__":
    os.umask(0o077)  # what commands write, the database above all, only its owner can open
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if command in ("version", "--version"):
        sys.stdout.write(f"{version_line(as_json='--json' in sys.argv)}\n")
        sys.exit()
    if command == "demo" and "SCOPES_FILE" not in os.environ:
        os.environ.setdefault("SCOPES", demo_scopes())
    try:
        if command in REFUSED_IN_LIVE and settings.ENVIRONMENT == "live":
            sys.exit(f"{command} is refused in live: {REFUSED_IN_LIVE[command]}.")
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as fault:
        sys.exit(f"Wrong setting: {fault}")
    except Error as fault:  # of Django's commands, such as migrate; ours have their own line
        if "--traceback" in sys.argv:
            raise
        sys.stderr.write(f"{describe(fault)}\n")
        sys.exit(exit_code(fault))
    except BrokenPipeError:  # `| head` has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
