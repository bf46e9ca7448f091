"""Credentials, of which a system user has two live ones at most (contract 3)."""

import json
from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from taxpayers.credential_kind import CredentialKind
from taxpayers.facts.validity import is_over
from taxpayers.models.system_user import SystemUser
from taxpayers.models.usage import RateLimitCounter
from taxpayers.models.view_only import VIEW_ONLY

# A live one has one of these slots, so that the database limits their number.
SLOTS = (1, 2)
MAX_LIVE_CREDENTIALS = len(SLOTS)


class Credential(models.Model):
    """What a system user logs in with: a secret, a public key or the name of a certificate."""

    system_user = models.ForeignKey(
        SystemUser, models.CASCADE, related_name="credentials", verbose_name=_("system user")
    )
    # NULL once it is revoked, or expired and replaced.
    slot = models.PositiveSmallIntegerField(null=True, editable=False)
    # The hash of a secret, which itself is never stored; the name of a key; the hash of a subject.
    lookup = models.CharField(max_length=80, editable=False)
    hint = models.CharField(_("ends with"), max_length=8, editable=False)
    public_jwk = models.TextField(
        _("public key"), blank=True, default="", db_default="", editable=False
    )
    # NULL where it is no certificate: SQLite adds such a column without making the table anew.
    certificate_name = models.TextField(  # noqa: DJ001 - see above
        _("name in the certificate"), null=True, editable=False
    )
    # In CIDR notation, separated by blanks; empty: logins may come from anywhere.
    allowed_networks = models.TextField(
        _("allowed networks"), blank=True, default="", db_default="", editable=False
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)

    class Meta:
        db_table = "credentials"
        verbose_name = _("client secret")
        verbose_name_plural = _("client secrets")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["system_user", "lookup"], name="secret_stored_once"),
            models.UniqueConstraint(
                fields=["system_user", "slot"],
                condition=Q(slot__isnull=False),
                name="secret_two_live_at_most",
            ),
            models.CheckConstraint(condition=Q(slot__in=SLOTS), name="secret_slot_is_1_or_2"),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | Q(slot__isnull=True),
                name="secret_revoked_leaves_its_slot",
            ),
            models.CheckConstraint(
                condition=Q(created_at__lt=F("expires_at")), name="secret_created_before_expiry"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"],
                name="secret_by_end",
                condition=Q(slot__isnull=False),
            ),
            models.Index(fields=["hint"], name="secret_by_hint"),
            models.Index(
                fields=["-id", "system_user", "allowed_networks"],
                name="secret_by_network",
                condition=Q(slot__isnull=False) & ~Q(allowed_networks=""),
            ),
        ]

    def __str__(self) -> str:
        return f"…{self.hint}"

    @property
    def is_key(self) -> bool:
        return bool(self.public_jwk)

    @property
    def kid(self) -> str:
        """The name of a key; empty for a secret."""
        return json.loads(self.public_jwk)["kid"] if self.is_key else ""

    @property
    def is_certificate(self) -> bool:
        return self.certificate_name is not None

    @property
    def name(self) -> str:
        """What names a key or a certificate to people: public; empty for a secret."""
        return self.certificate_name or self.kid

    @property
    def kind(self) -> CredentialKind:
        if self.is_certificate:
            return CredentialKind.CERTIFICATE
        return CredentialKind.KEY if self.is_key else CredentialKind.SECRET

    @property
    def label(self) -> str:
        """What it is and its last characters, as `key …abcd`, in the active language."""
        return f"{gettext(self.kind)} {self}"

    def fits(self, owner: SystemUser) -> bool:
        """Whether it is of the kind that its owner logs in with."""
        return self.kind is owner.credential_kind

    def is_live(self, at: datetime) -> bool:
        return self.revoked_at is None and not is_over(self.expires_at, at)

    def state(self, at: datetime) -> str:
        """In the words of the APIs."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if is_over(self.expires_at, at) else "live"

    @property
    def last_used_at(self) -> datetime | None:
        """The start of the minute in which it last got a token, or when it was created if later."""
        usage: RateLimitCounter | None = getattr(self.system_user, "usage", None)
        used_at = usage.last_use_of(self.pk) if usage else None
        return used_at and max(used_at, self.created_at)
