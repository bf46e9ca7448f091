"""The WSGI application that the server runs."""

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from identity.boundary import no_body_for_head, whole_requests_only
from identity.counting import count_together

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
count_together(settings.VAR_DIR / f"metrics-{settings.PORT}")
application = no_body_for_head(whole_requests_only(get_wsgi_application()))
# What is loaded by now stays: the collector need not look at it again and again, and the pages stay
# shared by the workers that are forked from this process.
gc.collect()
gc.freeze()
