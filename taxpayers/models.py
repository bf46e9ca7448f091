"""The registry: taxpayers, intermediaries, granted permissions, system users (contract 3 and 4).

What must always hold is a constraint of the database. Changes are made by `taxpayers.services`.
"""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication

from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import is_over

DEFAULT_SCOPE = "InvoicingAPI"
DEFAULT_LOGINS_PER_MINUTE = 12  # specification 8

# Rows are changed by services alone: what staff may do is named after the deed, one permission for
# each `services.Action`. Who may do what: identity/staff/accounts/roles.py.
VIEW_ONLY = ("view",)


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
        permissions: ClassVar = [
            ("register_taxpayer", _("Can register taxpayers")),
            ("rename_taxpayer", _("Can rename taxpayers")),
            ("activate_taxpayer", _("Can activate taxpayers")),
            ("deactivate_taxpayer", _("Can deactivate taxpayers")),
            ("import_registry", _("Can import taxpayers from a file")),
            ("export_registry", _("Can export the registry to a file")),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tin", "rob"], name="taxpayer_named_once"),
            models.CheckConstraint(condition=~Q(tin=""), name="taxpayer_has_tin"),
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
        permissions: ClassVar = [
            ("register_intermediary", _("Can register intermediaries")),
            ("change_intermediary", _("Can change intermediaries")),
        ]

    def __str__(self) -> str:
        return str(self.taxpayer)


class PermissionCode(models.Model):
    """What a taxpayer can permit, for example `documents:submit`. Staff extend the table."""

    code = models.CharField(_("code"), max_length=64, primary_key=True)
    description = models.CharField(_("description"), max_length=255, blank=True)

    class Meta:
        db_table = "permission_codes"
        verbose_name = _("permission code")
        verbose_name_plural = _("permission codes")
        default_permissions: ClassVar = VIEW_ONLY
        permissions: ClassVar = [
            ("set_permission_code", _("Can add and describe permission codes")),
        ]
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

    class Meta:
        db_table = "granted_permissions"
        verbose_name = _("granted permission")
        verbose_name_plural = _("granted permissions")
        default_permissions: ClassVar = VIEW_ONLY
        permissions: ClassVar = [
            ("grant_permission", _("Can enter permissions that taxpayers grant")),
            ("revoke_permission", _("Can revoke permissions")),
        ]
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


class SystemUser(AbstractApplication):
    """An ERP system registered against one taxpayer: the OAuth client (RFC 6749 section 2)."""

    # The toolkit's fields for other grants have no meaning here. None removes an inherited field.
    client_secret = hash_client_secret = user = None  # type: ignore[assignment]
    redirect_uris = post_logout_redirect_uris = allowed_origins = None  # type: ignore[assignment]
    client_type = authorization_grant_type = algorithm = None  # type: ignore[assignment]
    skip_authorization = registration_source = cimd_expires_at = None  # type: ignore[assignment]

    client_id = models.CharField(_("client ID"), max_length=64, unique=True, editable=False)
    taxpayer = models.ForeignKey(
        Taxpayer, models.PROTECT, related_name="system_users", verbose_name=_("taxpayer")
    )
    scopes = models.CharField(
        _("scopes"), max_length=255, default=DEFAULT_SCOPE, help_text=_("Separated by blanks.")
    )
    logins_per_minute = models.PositiveIntegerField(
        _("logins per minute"),
        default=DEFAULT_LOGINS_PER_MINUTE,
        help_text=_("0: never refused, only observed."),
    )
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    blocked_at = models.DateTimeField(_("blocked"), null=True, editable=False)
    blocked_by = models.CharField(_("blocked by"), max_length=150, blank=True, editable=False)
    blocked_reason = models.CharField(_("reason"), max_length=500, blank=True, editable=False)

    class Meta(AbstractApplication.Meta):
        abstract = False
        db_table = "system_users"
        verbose_name = _("system user")
        verbose_name_plural = _("system users")
        default_permissions: ClassVar = VIEW_ONLY
        permissions: ClassVar = [
            ("issue_credentials", _("Can create system users and issue their credentials")),
            ("change_system_user", _("Can change the name, scopes and limit of system users")),
            ("extend_system_user", _("Can change when system users expire")),
            ("block_system_user", _("Can block system users")),
            ("unblock_system_user", _("Can unblock system users")),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(blocked_at__isnull=True, blocked_by="", blocked_reason="")
                | (Q(blocked_at__isnull=False) & ~Q(blocked_by="") & ~Q(blocked_reason="")),
                name="system_user_block_has_who_and_why",
            ),
        ]
        # What staff look for among a million: few rows, so small indexes.
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"],
                name="system_user_by_end",
                condition=Q(expires_at__isnull=False),
            ),
            models.Index(
                fields=["-blocked_at"],
                name="system_user_blocked",
                condition=Q(blocked_at__isnull=False),
            ),
        ]

    def clean(self) -> None:
        """Nothing of the toolkit's: it checks redirect URIs, which a system user has not."""

    def is_expired(self, at: datetime) -> bool:
        return is_over(self.expires_at, at)


class ClientSecret(models.Model):
    """One secret of a system user: its hash and its life, never the secret itself (contract 3)."""

    system_user = models.ForeignKey(
        SystemUser, models.CASCADE, related_name="secrets", verbose_name=_("system user")
    )
    # Two places for live secrets; NULL once the secret has left its place (revoked or replaced).
    slot = models.PositiveSmallIntegerField(null=True, editable=False)
    hashed = models.CharField(max_length=80, editable=False)
    hint = models.CharField(_("ends with"), max_length=8, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)

    class Meta:
        db_table = "client_secrets"
        verbose_name = _("client secret")
        verbose_name_plural = _("client secrets")
        default_permissions: ClassVar = VIEW_ONLY
        permissions: ClassVar = [
            ("rotate_secret", _("Can issue a further client secret")),
            ("retire_secret", _("Can let a client secret end earlier")),
            ("revoke_secret", _("Can revoke client secrets")),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["system_user", "hashed"], name="secret_stored_once"),
            models.UniqueConstraint(
                fields=["system_user", "slot"],
                condition=Q(slot__isnull=False),
                name="secret_two_live_at_most",
            ),
            models.CheckConstraint(condition=Q(slot__in=[1, 2]), name="secret_slot_is_1_or_2"),
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
        ]

    def __str__(self) -> str:
        return f"…{self.hint}"

    def is_live(self, at: datetime) -> bool:
        return self.revoked_at is None and not is_over(self.expires_at, at)

    @property
    def last_used_at(self) -> datetime | None:
        """The beginning of the minute in which it last logged in; None if it never did."""
        usage: RateLimitCounter | None = getattr(self.system_user, "usage", None)
        return usage.last_use_of(self.pk) if usage else None


class RateLimitCounter(models.Model):
    """What each login of a client changes (contract 1, Limits; contract 3, last used).

    One narrow row beside the registry's own: a login writes once, and the registry rests. A minute
    begins with the client's first login; in the minute of its last one it logged in `used` times.
    """

    system_user = models.OneToOneField(
        SystemUser, models.CASCADE, primary_key=True, db_constraint=False, related_name="usage"
    )
    window_started_at = models.DateTimeField()
    used = models.PositiveIntegerField()
    # For each secret, by its id: the beginning of the minute in which it last logged in. So it
    # changes at most once a minute, however often the secret is used.
    secrets_used = models.JSONField(default=dict)

    class Meta:
        db_table = "client_usage"
        default_permissions: ClassVar = ()  # no page shows it

    def __str__(self) -> str:
        return f"{self.used} since {self.window_started_at}"

    def last_use_of(self, secret_id: int) -> datetime | None:
        began_at = self.secrets_used.get(str(secret_id))
        return datetime.fromisoformat(began_at) if began_at else None


class Change(models.Model):
    """One change of state: who, when, from where, what, before and after, and why (contract 4)."""

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

    class Meta:
        db_table = "changes"
        verbose_name = _("change")
        verbose_name_plural = _("history")
        default_permissions: ClassVar = VIEW_ONLY
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["object_type", "object_id", "-at"], name="change_of_object"),
            models.Index(fields=["-at"], name="change_by_time"),
            models.Index(fields=["by", "-at"], name="change_by_who"),
            models.Index(fields=["action", "-at"], name="change_by_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.label}"


class UploadedFile(models.Model):
    """A file that waits to be confirmed: kept for the one who sent it, for a day at most."""

    name = models.CharField(max_length=255)
    content = models.BinaryField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        db_table = "uploaded_files"
        default_permissions: ClassVar = ()  # no page lists it

    def __str__(self) -> str:
        return self.name
