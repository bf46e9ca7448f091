"""Makes the clients of the sandbox that are missing, and renews what ends."""

import logging
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from identity.sandbox.catalogue import CLIENTS
from identity.sandbox.portal import TAXPAYER
from identity.sandbox.records import SANDBOX, end_of_tomorrow, taxpayer_of
from taxpayers.models import Credential, SystemUser
from taxpayers.repeated import repeat
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from taxpayers.services.sandbox.clients import move_sandbox_secret_end
from taxpayers.shut_down import answered_within


@transaction.atomic
def make_sandbox(at: datetime) -> list[str]:
    """The names of the new clients. Raises ServiceError unless ENVIRONMENT is test."""
    ids = [client.credentials.client_id for client in CLIENTS]
    present = {user.client_id for user in SystemUser.objects.filter(client_id__in=ids)}
    missing = [client for client in CLIENTS if client.credentials.client_id not in present]
    for client in missing:
        client.make(client.name, at)
    for tin in {TAXPAYER.tin, *(one.on_behalf_of for one in CLIENTS if one.on_behalf_of)}:
        taxpayer_of(tin)
    renew_ending_secret(at)
    return [client.name for client in missing]


def renew_ending_secret(at: datetime) -> None:
    """Let the secret that ends tomorrow do so as of now. Locks nothing unless it must change."""
    name, last_moment = SandboxName.SECRET_ENDS_TOMORROW, end_of_tomorrow(at)
    present = Credential.objects.filter(system_user__client_id=CREDENTIALS[name].client_id)
    if present.exclude(expires_at=last_moment).exists():
        move_sandbox_secret_end(name=name, last_moment=last_moment, by=SANDBOX, at=at)


logger = logging.getLogger("identity.sandbox")

_LOOK_EVERY_SECONDS = 1800.0
_ANSWER_SECONDS = 10.0


def keep_sandbox_current() -> None:
    """From now on; of several processes one makes the change, and the others find it made."""
    repeat(_renew, _LOOK_EVERY_SECONDS, logger, "the sandbox was not renewed")


def _renew() -> None:
    renew_once()
    connection.close()  # it would be idle until the next time


def renew_once() -> None:
    """Raises django.db.DatabaseError: without a database the next time will do."""
    with answered_within(_ANSWER_SECONDS):
        renew_ending_secret(timezone.now())
