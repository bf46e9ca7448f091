"""How long an access token lives (specification 2.1). Pure."""

from datetime import timedelta

TOKEN_LIFETIME = timedelta(seconds=3600)  # specification 2.1
