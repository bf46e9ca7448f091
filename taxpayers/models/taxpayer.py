"""Taxpayers and intermediaries (contract 4)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from taxpayers.identifiers import TaxpayerId
from taxpayers.models.view_only import VIEW_ONLY


class Taxpayer(models.Model):
    """Who is represented: a TIN, and a ROB number where there is one."""

    tin = models.CharField(_("TIN"), max_length=64)
    # Empty, never NULL, for "none": so that one unique constraint covers both cases.
    rob = models.CharField(_("ROB number"), max_length=64, blank=True, default="")
    name = models.CharField(_("name"), max_length=255)
    is_active = models.BooleanField(_("active"), default=True, db_default=True)
    created_at = models.DateTimeField(_("registered"), default=timezone.now, editable=False)

    class Meta:
        db_table = "taxpayers"
        verbose_name = _("taxpayer")
        verbose_name_plural = _("taxpayers")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tin", "rob"], name="taxpayer_named_once"),
            models.CheckConstraint(condition=~Q(tin=""), name="taxpayer_has_tin"),
        ]
        # Few are not active; staff list them, and their system users.
        indexes: ClassVar = [
            models.Index(
                fields=["tin", "rob"], name="taxpayer_not_active", condition=Q(is_active=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.identifier})"

    @property
    def identifier(self) -> TaxpayerId:
        return TaxpayerId(self.tin, self.rob)


class Intermediary(models.Model):
    """A taxpayer in the role of acting for others, optionally until a last moment."""

    taxpayer = models.OneToOneField(
        Taxpayer, models.PROTECT, related_name="intermediary", verbose_name=_("taxpayer")
    )
    is_active = models.BooleanField(_("active"), default=True, db_default=True)
    active_until = models.DateTimeField(_("active until"), null=True, blank=True)
    created_at = models.DateTimeField(_("registered"), default=timezone.now, editable=False)

    class Meta:
        db_table = "intermediaries"
        verbose_name = _("intermediary")
        verbose_name_plural = _("intermediaries")
        default_permissions: ClassVar = VIEW_ONLY
        indexes: ClassVar = [
            models.Index(
                fields=["active_until"],
                name="intermediary_by_end",
                condition=Q(active_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.taxpayer)
