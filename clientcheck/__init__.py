"""The client check: `clientcheck.py` is the whole of it, one file for ERP teams to download."""
