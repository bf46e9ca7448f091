"""How often a client has logged in during a minute, and when with which secret."""

from datetime import datetime
from typing import ClassVar

from django.db import models

from taxpayers.models.system_user import SystemUser


class RateLimitCounter(models.Model):
    """The only row that a successful login updates (contract 1, Limits; contract 3, last used).

    A window of a minute starts with a login; in it the client has logged in `used` times.
    """

    system_user = models.OneToOneField(
        SystemUser, models.CASCADE, primary_key=True, db_constraint=False, related_name="usage"
    )
    window_started_at = models.DateTimeField()
    used = models.PositiveIntegerField()
    # The id of each secret → the start of the minute in which it last logged in. So the value
    # changes at most once a minute, however often the secret is used.
    secrets_used = models.JSONField(default=dict)

    class Meta:
        db_table = "client_usage"
        default_permissions: ClassVar = ()  # no page shows it

    def __str__(self) -> str:
        return f"{self.used} since {self.window_started_at}"

    def last_use_of(self, secret_id: int) -> datetime | None:
        started_at = self.secrets_used.get(str(secret_id))
        return datetime.fromisoformat(started_at) if started_at else None
