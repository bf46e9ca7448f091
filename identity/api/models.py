"""Answers to requests with an `Idempotency-Key`, for a day (draft-ietf-httpapi-idempotency-key)."""

from typing import ClassVar

from django.db import models

from taxpayers.models import NoPage


class StoredAnswer(NoPage):
    """Never a secret. Stored in the transaction of the change: both are there, or neither."""

    client_id = models.CharField(max_length=64)
    key = models.CharField(max_length=64)  # its SHA-256 in hexadecimal
    request = models.CharField(max_length=64)  # the same of method, path and body
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.JSONField()
    stored_at = models.DateTimeField()

    class Meta(NoPage.Meta):
        db_table = "management_answers"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["client_id", "key"], name="management_answer_once")
        ]
        indexes: ClassVar = [models.Index(fields=["stored_at"], name="management_answer_by_age")]
