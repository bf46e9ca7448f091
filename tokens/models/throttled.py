"""The callers that a limit denied (contract 1, Limits): one row for each of them and hour."""

from typing import ClassVar

from django.db import models

from taxpayers.models import NoPage


class ThrottledCaller(NoPage):
    """A client, an address, or both, with the first denial of the hour that was remembered.

    `reference` is that of the denial; the others of the hour have no record.
    """

    hour = models.DateTimeField()
    cause = models.CharField(max_length=16)  # a ThrottleCause
    client_id = models.CharField(max_length=64, blank=True)
    source = models.CharField(max_length=43, blank=True)  # the address, or its IPv6 network
    at = models.DateTimeField()
    reference = models.UUIDField()

    class Meta(NoPage.Meta):
        db_table = "throttled_callers"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hour", "cause", "client_id", "source"], name="throttled_once_an_hour"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["client_id", "-hour"], name="throttled_by_client"),
            models.Index(fields=["source", "-hour"], name="throttled_by_source"),
        ]
