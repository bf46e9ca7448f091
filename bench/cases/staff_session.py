"""Signs a member of staff in, in a process with the settings of the service that is measured."""

import json
import secrets
import sys

import django

django.setup()

from allauth.account.internal.flows.login import record_authentication  # noqa: E402
from allauth.mfa.totp.internal.auth import TOTP  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402


def open_session() -> None:
    """Reads paths as JSON; writes the session's cookie and the number of queries of each path."""
    client = _signed_in()
    client.get("/admin/")  # the first page writes to the session
    queries = []
    for path in json.load(sys.stdin):
        with CaptureQueriesContext(connection) as captured:
            response = client.get(path)
        if response.status_code != 200:
            raise SystemExit(f"{path}: {response.status_code}")
        queries.append(len(captured))
    name = settings.SESSION_COOKIE_NAME
    json.dump({"cookie": f"{name}={client.cookies[name].value}", "queries": queries}, sys.stdout)


def _signed_in() -> Client:
    """A client in which a new superuser is signed in, as after password and second factor."""
    user = get_user_model().objects.create_superuser(f"bench-{secrets.token_hex(4)}")
    authenticator = TOTP.activate(user, secrets.token_hex(16)).instance
    client = Client(headers={"X-Forwarded-Proto": "https"})
    client.force_login(user)
    request = HttpRequest()
    request.session, request.user = client.session, user
    record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
    request.session.save()
    return client
