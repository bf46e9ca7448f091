#!/usr/bin/env python
"""Commands of the service: `manage.py help` lists them."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import Error

from taxpayers.management.database_errors import describe, exit_code

if __name__ == "__main__":
    os.umask(0o077)  # what commands write, the database above all, only its owner can open
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    try:
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
