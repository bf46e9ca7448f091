"""The WSGI application that the server runs."""

import os

from django.core.wsgi import get_wsgi_application

from identity.boundary import whole_requests_only

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "identity.settings")
application = whole_requests_only(get_wsgi_application())
