"""Wrong configuration, found by `manage.py check`."""
