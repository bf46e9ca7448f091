"""The places of tokens in status lists (contract 2), and what changes their status.

An index is in one of these tables at most: it belongs to tokens, waits in `StatusChange` for its
bit to be set, or is set, in `EndedStatusIndex`, until its tokens have expired; then it is used
again. The last column that `GET /status/…` needs is only there, so no list reads all indexes.
"""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from taxpayers.models.usage import RandomEpoch
from taxpayers.models.view_only import NoPage


class StatusIndex(NoPage):
    """The index of all tokens that one secret of a client got for one taxpayer.

    The columns say what these tokens say. Only the service writes here; a row that is deleted,
    also by SQL, sets the bit of its index (`taxpayers/facts/status_triggers.py`).
    """

    index = models.BigIntegerField(primary_key=True)
    # No foreign keys: a row must outlive what it names, until its bit is set.
    system_user_id = models.BigIntegerField()
    secret_id = models.BigIntegerField()
    tin = models.CharField(max_length=64)
    rob = models.CharField(max_length=64, blank=True)
    actor = models.CharField(max_length=129, blank=True)  # empty: the taxpayer acts for itself
    # All that any of these tokens may do; the names of JSON objects are joined in one statement.
    scopes = models.JSONField(default=dict)
    permissions = models.JSONField(default=dict)
    # After this moment an end that has passed may have ended the tokens.
    check_at = models.DateTimeField(null=True)
    # Another number whenever the row gets another meaning. As the epoch of a client it never
    # returns: what a node remembers of a row is true as long as the row has this version.
    version = models.BigIntegerField(db_default=RandomEpoch(), editable=False)
    # Processes read what is new by it: whose index it is (`tokens/status_lists/owners.py`).
    taken_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta(NoPage.Meta):
        db_table = "status_indexes"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["system_user_id", "secret_id", "tin", "rob", "actor"],
                name="status_index_once",
            )
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["check_at"],
                name="status_index_by_check",
                condition=models.Q(check_at__isnull=False),
            ),
            models.Index(fields=["taken_at"], name="status_index_by_taking"),
        ]


class StatusChange(NoPage):
    """What triggers note in the transaction of a change: a client to check, or an index to end."""

    id = models.BigAutoField(primary_key=True)
    system_user_id = models.BigIntegerField(null=True)
    ended_index = models.BigIntegerField(null=True)

    class Meta(NoPage.Meta):
        db_table = "status_changes"


class EndedStatusIndex(NoPage):
    """An index whose bit is set. One process at a time adds rows: who read up to `number` has all.

    Later, when all tokens of the index have expired, it is free to be used again.
    """

    number = models.BigAutoField(primary_key=True)
    index = models.BigIntegerField(unique=True)
    ended_at = models.DateTimeField()

    class Meta(NoPage.Meta):
        db_table = "ended_status_indexes"
