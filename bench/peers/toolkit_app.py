"""The application of `toolkit`: its token view, with the least of settings that it needs."""

import os
from functools import partial
from pathlib import Path

from django.conf import settings
from django.contrib.auth.hashers import make_password as make_password
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import path

from identity.databases import database

settings.configure(
    SECRET_KEY=os.environ["SECRET_KEY"],
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": database(os.environ["DATABASE_URL"], Path())},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    MIDDLEWARE=[],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    LOGGING={  # why it answered 500, into its log
        "version": 1,
        "handlers": {"stderr": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["stderr"], "level": "ERROR"},
    },
    OAUTH2_PROVIDER={"SCOPES": {"InvoicingAPI": "The e-invoicing APIs"}},
    **({"PASSWORD_HASHERS": [os.environ["HASHER"]]} if os.environ["HASHER"] else {}),
)
application = get_wsgi_application()

from oauth2_provider.views import TokenView  # noqa: E402 - needs the settings

urlpatterns = [path("connect/token", TokenView.as_view())]
migrate = partial(call_command, "migrate", verbosity=0)
