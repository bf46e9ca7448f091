"""Requests to act for a taxpayer, or to log in as it, which that taxpayer decides (contract 4)."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from taxpayers.client_keys import short_fingerprint, thumbprint_of
from taxpayers.facts.validity import is_over
from taxpayers.identifiers import TaxpayerId
from taxpayers.models.permission import GrantedPermission
from taxpayers.models.system_user import SystemUser
from taxpayers.models.taxpayer import Intermediary
from taxpayers.models.view_only import VIEW_ONLY

OPEN, APPROVED, DECLINED, WITHDRAWN = "open", "approved", "declined", "withdrawn"
EXPIRED = "expired"


class PermissionRequest(models.Model):
    """What an intermediary, or an ERP system with a new key (a connection), asks of a taxpayer.

    The taxpayer may not exist, and none is looked up: so to ask teaches nothing about taxpayers.
    Its id is part of the address of the confirm page.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tin = models.CharField(_("TIN"), max_length=64)
    rob = models.CharField(_("ROB number"), max_length=64, blank=True, default="")
    intermediary = models.ForeignKey(
        Intermediary,
        models.PROTECT,
        null=True,  # of a connection
        related_name="requests",
        verbose_name=_("intermediary"),
    )
    client_id = models.CharField(  # that asked; empty: a connection
        _("client ID"), max_length=64, blank=True, editable=False
    )
    codes = models.TextField(_("permission codes or scopes"))  # separated by blanks
    # Only of a connection: the key that its system user will log in with, what the system calls
    # itself, and the address that asked, as limits count addresses.
    public_jwk = models.TextField(_("public key"), blank=True, editable=False)
    name = models.CharField(_("name"), max_length=100, blank=True)
    source = models.CharField(_("source address"), max_length=64, blank=True, editable=False)
    valid_from = models.DateTimeField(_("valid from"), null=True, blank=True)  # None: once approved
    valid_until = models.DateTimeField(_("valid until"), null=True, blank=True)
    # Whether approving ends what the taxpayer has granted to the intermediary until then.
    replaces = models.BooleanField(_("replaces the present permissions"), default=False)
    own_reference = models.CharField(_("own reference"), max_length=128, blank=True)
    return_address = models.TextField(_("return address"), blank=True)
    state = models.CharField(
        _("state"),
        max_length=16,
        choices=[
            (OPEN, _("Open")),
            (APPROVED, _("Approved")),
            (DECLINED, _("Declined")),
            (WITHDRAWN, _("Withdrawn")),
            (EXPIRED, _("Expired")),
        ],
        default=OPEN,
        editable=False,
    )
    created_at = models.DateTimeField(_("asked"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"))
    decided_at = models.DateTimeField(_("decided"), null=True, editable=False)
    evidence = models.JSONField(_("evidence"), null=True, editable=False)  # of the decision
    permission = models.ForeignKey(
        GrantedPermission,
        models.PROTECT,
        null=True,
        editable=False,
        related_name="requests",
        verbose_name=_("permission"),
    )
    system_user = models.ForeignKey(
        SystemUser,
        models.PROTECT,
        null=True,
        editable=False,
        related_name="requests",
        verbose_name=_("system user"),
    )

    class Meta:
        db_table = "permission_requests"
        verbose_name = _("permission request")
        verbose_name_plural = _("permission requests")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state=APPROVED, permission__isnull=False, system_user__isnull=True)
                | Q(state=APPROVED, permission__isnull=True, system_user__isnull=False)
                | (~Q(state=APPROVED) & Q(permission__isnull=True, system_user__isnull=True)),
                name="request_approved_has_result",
            ),
            models.CheckConstraint(
                condition=Q(intermediary__isnull=False, public_jwk="")
                | (Q(intermediary__isnull=True) & ~Q(public_jwk="")),
                name="request_of_intermediary_or_key",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tin", "rob", "-id"], name="request_of_taxpayer"),
            models.Index(fields=["intermediary", "-id"], name="request_of_intermediary"),
            models.Index(
                fields=["intermediary", "tin", "rob"],
                name="request_open",
                condition=Q(state=OPEN),
            ),
            models.Index(fields=["expires_at"], name="request_by_end", condition=Q(state=OPEN)),
        ]

    def __str__(self) -> str:
        return f"{self.asked} → {self.asks}"

    @property
    def is_connection(self) -> bool:
        """Whether an ERP system asks to log in as the taxpayer, with its own key."""
        return bool(self.public_jwk)

    @property
    def kind(self) -> str:
        """In the management API and in the address that leads to a portal."""
        return "connection" if self.is_connection else "permission"

    @property
    def asks(self) -> str:
        """Who asks: the intermediary, or what the system calls itself."""
        role = self.intermediary
        return self.name if role is None else str(role.taxpayer.identifier)

    @property
    def fingerprint(self) -> str:
        """Of the key of a connection, for people to compare; empty for an intermediary."""
        return short_fingerprint(thumbprint_of(self.public_jwk)) if self.public_jwk else ""

    @property
    def asked(self) -> TaxpayerId:
        """The taxpayer that is asked, as it was named."""
        return TaxpayerId(self.tin, self.rob)

    def state_at(self, at: datetime) -> str:
        """One that was not decided in time has expired, before the nightly work says so."""
        is_late = self.state == OPEN and is_over(self.expires_at, at)
        return EXPIRED if is_late else self.state
