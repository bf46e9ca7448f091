"""Accounts of staff: by role, with a second factor, signed in as the service demands it."""

import base64
import time
from typing import Any, TypeVar

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor import totp
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.test import Client

from identity.staff.models import StaffAccount
from tests.servers.processes import slowness

PASSWORD = "a-long-Password-for-tests-1"
Person = TypeVar("Person", bound=User)
_TIME_TO_TYPE = 4  # seconds
TOTP_SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def new_staff(role: str = "", username: str = "", password: str | None = PASSWORD) -> StaffAccount:
    """A member of staff in the group `role`; without one, a superuser."""
    username = username or role.replace(" ", "-") or "boss"
    if role:
        user = User.objects.create_user(username, password=password, is_staff=True)
        user.groups.add(Group.objects.get(name=role))
    else:
        user = User.objects.create_superuser(username, password=password)
    return StaffAccount.objects.get(pk=user.pk)


def with_totp(user: Person) -> Person:
    TOTP.activate(user, TOTP_SECRET)
    return user


def signed_in(user: User, **defaults: Any) -> Client:
    client = Client(**defaults)
    client.force_login(user)
    request = HttpRequest()
    request.session, request.user = client.session, user
    # As after the first page: what that writes is not counted among the queries of the next.
    request.session["signed_in_at"] = request.session["seen_at"] = time.time()
    factor = Authenticator.objects.filter(user=user).first()
    if factor is not None:
        record_authentication(request, user, "mfa", id=factor.pk, type=factor.type)
    request.session.save()
    return client


def totp_code(secret: str = TOTP_SECRET, step: int = 0) -> str:
    """The code that an app shows now (RFC 6238), or `step` times 30 seconds later.

    One that is about to end is not given: the service takes none but the present one.
    """
    left = 30 - time.time() % 30
    if left < _TIME_TO_TYPE * max(1, slowness() / 2):  # two tests run at once on each core
        time.sleep(left)
    app = totp.TOTP(base64.b32decode(secret), 6, SHA1(), 30)  # noqa: S303 - as in RFC 6238
    return app.generate(int(time.time()) + 30 * step).decode()
