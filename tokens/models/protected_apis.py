"""Protected APIs and their secrets: who may ask whether a token is active (contract 2)."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from taxpayers.credential_kind import CredentialKind
from taxpayers.facts.validity import is_over


class ProtectedApi(models.Model):
    """An API that accepts tokens for one audience: a resource server (RFC 6749 section 1.1)."""

    client_id = models.CharField(_("client ID"), max_length=64, unique=True, editable=False)
    name = models.CharField(_("name"), max_length=255, unique=True)
    audience = models.CharField(_("audience"), max_length=255)
    is_active = models.BooleanField(_("active"), default=True, db_default=True)
    created_at = models.DateTimeField(_("registered"), editable=False)

    class Meta:
        db_table = "protected_apis"
        verbose_name = _("protected API")
        verbose_name_plural = _("protected APIs")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name

    @property
    def history_label(self) -> str:
        """Its name in the history, where it is searched for by its client ID."""
        return f"{self.client_id} {self.name}"


class ProtectedApiSecret(models.Model):
    """One secret of a protected API: its hash and its dates, never the secret itself."""

    protected_api = models.ForeignKey(ProtectedApi, models.CASCADE, related_name="credentials")
    lookup = models.CharField(max_length=80, editable=False)
    hint = models.CharField(max_length=8, editable=False)
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, editable=False)
    # The start of the minute in which it was last used to ask.
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "protected_api_secrets"
        default_permissions: ClassVar = ()  # shown on the page of its API
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["protected_api", "lookup"], name="api_secret_stored_once"
            ),
            models.CheckConstraint(
                condition=Q(created_at__lt=F("expires_at")), name="api_secret_created_before_expiry"
            ),
        ]

    def __str__(self) -> str:
        return f"…{self.hint}"

    @property
    def kind(self) -> CredentialKind:
        return CredentialKind.SECRET

    def is_live(self, at: datetime) -> bool:
        return self.revoked_at is None and not is_over(self.expires_at, at)
