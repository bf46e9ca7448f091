"""Django's WSGI application: every page that is answered in a thread."""

import os

from django.conf import settings
from django.core.signals import request_started  # only to disconnect two of Django's own receivers
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries

from identity.long_headers import without_long_headers
from identity.metrics_files import share_counters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
share_counters(settings.VAR_DIR / f"metrics-{settings.PORT}")
application = without_long_headers(get_wsgi_application())

# Each of these costs time in every login and is not needed.
if not settings.DEBUG:
    request_started.disconnect(reset_queries)  # only DEBUG logs queries
request_started.disconnect(close_old_connections)  # request_finished closes broken ones already
