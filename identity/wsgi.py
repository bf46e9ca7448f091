"""The WSGI application that the server runs."""

import gc
import logging
import os

from django.conf import settings
from django.core.signals import request_started  # only to disconnect two of Django's own receivers
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries

from identity.metrics_files import share_counters
from identity.uwsgi_requests import omit_body_for_head, require_whole_requests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
share_counters(settings.VAR_DIR / f"metrics-{settings.PORT}")
application = omit_body_for_head(require_whole_requests(get_wsgi_application()))

# Each of these costs time in every login and is not needed.
if not settings.DEBUG:
    request_started.disconnect(reset_queries)  # only DEBUG logs queries
request_started.disconnect(close_old_connections)  # request_finished closes broken ones already
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # not in our lines
logging._srcfile = None  # nor the line of code (logging HOWTO, "Optimization")

# What is loaded by now stays: the garbage collector need not look at it again, and the workers that
# are forked from this process go on sharing its memory pages.
gc.collect()
gc.freeze()
