"""The WSGI application that the server runs."""

import gc
import logging
import os

from django.conf import settings
from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries

from identity.metrics_files import share_counters
from identity.uwsgi_requests import no_body_for_head, whole_requests_only

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
share_counters(settings.VAR_DIR / f"metrics-{settings.PORT}")
application = no_body_for_head(whole_requests_only(get_wsgi_application()))
# A login would pay for these and has no use for them: a log of queries is for DEBUG, a broken
# connection is closed after a request already, and our log lines name no thread and no line.
if not settings.DEBUG:
    request_started.disconnect(reset_queries)
request_started.disconnect(close_old_connections)
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
logging._srcfile = None  # logging HOWTO, "Optimization"
# What is loaded by now stays: the collector need not look at it again and again, and the pages stay
# shared by the workers that are forked from this process.
gc.collect()
gc.freeze()
