"""The history of every change of state (contract 4)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTransform
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from taxpayers.actions import UNDO_IMPORT
from taxpayers.models.view_only import VIEW_ONLY


class Change(models.Model):
    """One change of state: who, when, from where, what, before and after, and why."""

    at = models.DateTimeField(_("when"), default=timezone.now, editable=False)
    by = models.CharField(_("who"), max_length=150, editable=False)
    address = models.GenericIPAddressField(_("from"), null=True, editable=False)
    action = models.CharField(_("action"), max_length=64, editable=False)
    object_type = models.CharField(_("kind"), max_length=64, editable=False)
    object_id = models.CharField(max_length=64, editable=False)
    label = models.CharField(_("what"), max_length=255, editable=False)
    reason = models.CharField(_("why"), max_length=500, blank=True, editable=False)
    before = models.JSONField(_("before"), default=dict, editable=False)
    after = models.JSONField(_("after"), default=dict, editable=False)
    # The same for all changes that were made as one: an import, or one task for several records.
    task_id = models.UUIDField(_("task"), null=True, editable=False)
    # Its place in the feed, given after its transaction was committed (taxpayers.services.feed).
    position = models.BigIntegerField(null=True, editable=False)
    # Of this row and of the `chain_hash` before it, given with the place (services.feed.chain).
    chain_hash = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )

    class Meta:
        db_table = "changes"
        verbose_name = _("change")
        verbose_name_plural = _("history")
        default_permissions: ClassVar = VIEW_ONLY
        # The changes of one task, which have one moment and one person, are next to each other.
        ordering: ClassVar = ["-at", "-by", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["position"],
                name="change_by_position",
                condition=Q(position__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["id"],
                name="change_without_position",
                condition=Q(position__isnull=True),
            ),
            models.Index(fields=["object_type", "object_id", "-at"], name="change_of_object"),
            models.Index(fields=["-at", "-by", "-id"], name="change_by_time"),
            models.Index(fields=["by", "-at", "-id"], name="change_by_who"),
            models.Index(fields=["action", "-at", "-by", "-id"], name="change_by_action"),
            models.Index(
                fields=["task_id", "-id"],
                name="change_of_task",
                condition=Q(task_id__isnull=False),
            ),
            # What was removed under a TIN, which may be registered again.
            models.Index(
                KeyTransform("tin", "before"),
                name="change_that_removed",
                condition=Q(action=UNDO_IMPORT.name),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.label}"


class HistoryCheck(models.Model):
    """What one run of `verify_history` found: how far the history was unbroken, or its fault."""

    at = models.DateTimeField(_("when"), editable=False)
    places = models.BigIntegerField(editable=False)
    chain_hash = models.CharField(max_length=64, blank=True, editable=False)
    # In English, as the command says it: the first row that does not fit, or the first records.
    fault = models.TextField(blank=True, editable=False)

    class Meta:
        db_table = "history_checks"
        default_permissions: ClassVar = ()

    def __str__(self) -> str:
        return self.fault or f"unbroken up to change {self.places}"
