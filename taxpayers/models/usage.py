"""How often a client has logged in during a minute, when with which secret, and its epoch."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from taxpayers.facts.epochs.row import RANDOM_EPOCH
from taxpayers.models.system_user import SystemUser
from taxpayers.models.view_only import NoPage


class RandomEpoch(models.Func):
    """The default of the column `epoch`: another number for each row."""

    arity = 0
    output_field = models.BigIntegerField()

    def as_sql(  # type: ignore[override]  # no option of a function is used
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_options: Any
    ) -> tuple[str, list[Any]]:
        return RANDOM_EPOCH[connection.vendor], []


class RateLimitCounter(NoPage):
    """The only row that a successful login updates (contract 1, Limits; contract 3, last used).

    A window of a minute starts with a login; in it the client has logged in `used` times. Triggers
    add the row with the system user and remove it with it, and change `epoch`
    (`taxpayers/facts/epochs/`).
    """

    system_user = models.OneToOneField(
        SystemUser, models.CASCADE, primary_key=True, db_constraint=False, related_name="usage"
    )
    window_started_at = models.DateTimeField()
    used = models.PositiveIntegerField()
    # The id of each secret → the start of the minute in which it last got a token; refused logins
    # do not count. So the value changes at most once a minute, however often the secret is used.
    secrets_used = models.JSONField(default=dict)
    epoch = models.BigIntegerField(db_default=RandomEpoch(), editable=False)

    class Meta(NoPage.Meta):
        db_table = "client_usage"

    def last_use_of(self, secret_id: int) -> datetime | None:
        started_at = self.secrets_used.get(str(secret_id))
        return datetime.fromisoformat(started_at) if started_at else None

    @property
    def last_used_at(self) -> datetime | None:
        """The last use of any of its secrets."""
        return max(map(datetime.fromisoformat, self.secrets_used.values()), default=None)
