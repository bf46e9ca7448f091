"""What taxpayers permit intermediaries to do, and the codes of it (contract 4)."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from taxpayers.facts.validity import is_over
from taxpayers.models.taxpayer import Intermediary, Taxpayer
from taxpayers.models.view_only import VIEW_ONLY


class PermissionCode(models.Model):
    """What a taxpayer can permit, for example `documents:submit`. Staff extend the table."""

    code = models.CharField(_("code"), max_length=64, primary_key=True)
    description = models.CharField(_("description"), max_length=255, blank=True)

    class Meta:
        db_table = "permission_codes"
        verbose_name = _("permission code")
        verbose_name_plural = _("permission codes")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(code__regex=r"^[a-z0-9_]+(:[a-z0-9_]+)*$"), name="permission_code_form"
            )
        ]

    def __str__(self) -> str:
        return self.code


class GrantedPermission(models.Model):
    """What one taxpayer permits one intermediary, from a first to an optional last moment."""

    taxpayer = models.ForeignKey(
        Taxpayer, models.PROTECT, related_name="granted", verbose_name=_("represented taxpayer")
    )
    intermediary = models.ForeignKey(
        Intermediary, models.PROTECT, related_name="permissions", verbose_name=_("intermediary")
    )
    codes = models.ManyToManyField(
        PermissionCode, db_table="granted_permission_codes", verbose_name=_("permission codes")
    )
    valid_from = models.DateTimeField(_("valid from"), default=timezone.now)
    valid_until = models.DateTimeField(_("valid until"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("granted"), default=timezone.now, editable=False)
    # When a login first used it; written some minutes later (tokens.login_events.counting).
    first_used_at = models.DateTimeField(_("first used"), null=True, editable=False)
    # Of its last change (taxpayers.evidence); the history has that of each. None: entered before.
    evidence = models.JSONField(_("evidence"), null=True, editable=False)

    class Meta:
        db_table = "granted_permissions"
        verbose_name = _("granted permission")
        verbose_name_plural = _("granted permissions")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(valid_until__isnull=True) | Q(valid_from__lt=F("valid_until")),
                name="permission_from_before_until",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["intermediary", "taxpayer"], name="permission_pair"),
            models.Index(
                fields=["valid_until"],
                name="permission_by_end",
                condition=Q(revoked_at__isnull=True, valid_until__isnull=False),
            ),
            models.Index(
                fields=["-revoked_at"],
                name="permission_revoked",
                condition=Q(revoked_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.taxpayer} → {self.intermediary}"

    def state(self, at: datetime) -> str:
        """In the words of the APIs."""
        if self.revoked_at is not None:
            return "revoked"
        if is_over(self.valid_until, at):
            return "expired"
        return "not_yet_valid" if at < self.valid_from else "in_force"
