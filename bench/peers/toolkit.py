"""The WSGI application of django-oauth-toolkit."""

import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.peers.toolkit_settings"
application = get_wsgi_application()
