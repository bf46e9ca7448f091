#!/usr/bin/env python
"""Commands of the service: `manage.py help` lists them."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from environs import EnvError

if __name__ == "__main__":
    os.umask(0o077)  # what commands write, the database above all, only its owner can open
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, EnvError) as fault:
        sys.exit(f"Wrong setting: {fault}")
    except KeyboardInterrupt:
        sys.exit("Stopped.")
