"""System users, the OAuth clients (contract 4)."""

from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication

from taxpayers.certificates import TLS_CLIENT_AUTH
from taxpayers.client_keys import PRIVATE_KEY_JWT
from taxpayers.credential_kind import CredentialKind
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.facts.validity import is_over
from taxpayers.identifiers import TaxpayerId
from taxpayers.models.taxpayer import Taxpayer
from taxpayers.models.view_only import VIEW_ONLY

DEFAULT_SCOPE = "InvoicingAPI"
DEFAULT_LOGINS_PER_MINUTE = 12  # specification 8
MAX_LOGINS_PER_MINUTE = 1_000_000
_BINDINGS = {
    TokenBinding.BEARER: _("Nothing: anybody who has a token can use it"),
    TokenBinding.DPOP: _("A key of the client (DPoP)"),
    TokenBinding.TLS: _("The client's TLS certificate"),
}


# Values that are separated by blanks; services set them.
_Values = partial(models.TextField, blank=True, default="", db_default="", editable=False)


class SystemUser(AbstractApplication):
    """An ERP system registered against one taxpayer: the OAuth client (RFC 6749 section 2)."""

    # The toolkit's fields for other grants have no meaning here. None removes an inherited field.
    client_secret = hash_client_secret = user = None  # type: ignore[assignment]
    redirect_uris = post_logout_redirect_uris = allowed_origins = None  # type: ignore[assignment]
    client_type = authorization_grant_type = algorithm = None  # type: ignore[assignment]
    skip_authorization = registration_source = cimd_expires_at = None  # type: ignore[assignment]
    # Of the toolkit's next release: each key has a row, and none is fetched from an address.
    client_jwks = client_jwks_uri = None

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
        help_text=_("0: unlimited, still counted."),
    )
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    # Named as in the toolkit's next release, so that its own column is not added beside it. Empty:
    # a secret, in the body or by HTTP Basic.
    token_endpoint_auth_method = models.CharField(
        _("login method"),
        max_length=32,
        choices=[
            ("", _("Client secret")),
            (PRIVATE_KEY_JWT, _("Private key (private_key_jwt)")),
            (TLS_CLIENT_AUTH, _("Certificate (tls_client_auth)")),
        ],
        blank=True,
        default="",
        db_default="",
        editable=False,
    )
    token_binding = models.CharField(
        _("tokens bound to"),
        max_length=8,
        choices=[*_BINDINGS.items()],
        blank=True,
        default=TokenBinding.BEARER,
        db_default=TokenBinding.BEARER,
        editable=False,
    )
    # What it may do for other taxpayers at most; both are separated by blanks, and empty: whatever
    # they granted to its intermediary. The taxpayers are identifiers, as in `onbehalfof`.
    allowed_permissions = _Values(_("allowed permissions"))
    allowed_taxpayers = _Values(_("allowed taxpayers"))
    only_on_behalf = models.BooleanField(
        _("only on behalf of others"), default=False, db_default=False, editable=False
    )
    # Where a browser goes back to after a request for a permission; separated by blanks.
    return_addresses = _Values(_("return addresses"))
    blocked_at = models.DateTimeField(_("blocked"), null=True, editable=False)
    blocked_by = models.CharField(_("blocked by"), max_length=150, blank=True, editable=False)
    blocked_reason = models.CharField(_("reason"), max_length=500, blank=True, editable=False)
    # Of those that are not revoked. For lists: no login reads it.
    last_secret_ends_at = models.DateTimeField(null=True, editable=False)

    class Meta(AbstractApplication.Meta):
        abstract = False
        db_table = "system_users"
        verbose_name = _("system user")
        verbose_name_plural = _("system users")
        default_permissions: ClassVar = VIEW_ONLY
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(blocked_at__isnull=True, blocked_by="", blocked_reason="")
                | (Q(blocked_at__isnull=False) & ~Q(blocked_by="") & ~Q(blocked_reason="")),
                name="system_user_block_has_who_and_why",
            ),
        ]
        # What staff search for among a million rows; each index covers few of them.
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
            models.Index(fields=["last_secret_ends_at"], name="system_user_by_last_secret"),
        ]

    def clean(self) -> None:
        """Skips the toolkit's check of redirect URIs: a system user has none."""

    @property
    def uses_key(self) -> bool:
        """Whether it logs in with a private key, and so with no secret."""
        return self.token_endpoint_auth_method == PRIVATE_KEY_JWT

    @property
    def uses_certificate(self) -> bool:
        """Whether it logs in with a certificate, and so with no secret."""
        return self.token_endpoint_auth_method == TLS_CLIENT_AUTH

    @property
    def login_method(self) -> str:
        """In the words of the APIs."""
        return self.token_endpoint_auth_method or "client_secret"

    @property
    def credential_kind(self) -> CredentialKind:
        """What it logs in with."""
        if self.uses_certificate:
            return CredentialKind.CERTIFICATE
        return CredentialKind.KEY if self.uses_key else CredentialKind.SECRET

    @property
    def required_binding(self) -> TokenBinding:
        """What its tokens are bound to; with a certificate always to that."""
        chosen = TokenBinding(self.token_binding)
        return chosen or (TokenBinding.TLS if self.uses_certificate else TokenBinding.BEARER)

    @property
    def tokens_bound_to(self) -> str:
        """The same in words."""
        return str(_BINDINGS[self.required_binding])

    @property
    def last_used_at(self) -> datetime | None:
        """When it last got a token, to the minute; refused logins do not count."""
        usage = getattr(self, "usage", None)
        return usage.last_used_at if usage else None

    @property
    def is_limited(self) -> bool:
        """Whether it gets tokens on behalf of others only, for all that they granted or less."""
        return bool(self.only_on_behalf or self.allowed_permissions or self.allowed_taxpayers)

    def may_act_for(self, taxpayer: TaxpayerId) -> bool:
        """Whether its limit allows this taxpayer; whether that one permits it is not asked."""
        return not self.allowed_taxpayers or str(taxpayer) in self.allowed_taxpayers.split()

    @property
    def usable_credentials(self) -> "models.QuerySet[Any]":
        """Its secrets, keys or certificates, whichever it logs in with; also those that ended."""
        rows: models.QuerySet[Any] = self.credentials.all()
        rows = rows.filter(certificate_name__isnull=not self.uses_certificate)
        return rows.exclude(public_jwk="") if self.uses_key else rows.filter(public_jwk="")

    def is_expired(self, at: datetime) -> bool:
        return is_over(self.expires_at, at)
