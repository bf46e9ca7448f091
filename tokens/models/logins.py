"""Login events, signing keys and limits (contract 1, 2 and 5)."""

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from taxpayers.models import VIEW_ONLY, NoPage, SystemUser


class LoginEvent(models.Model):
    """One answered login attempt. Never a secret, never a token.

    The key is the correlation id of the answer and, where a token was issued, its `jti`: a UUIDv7,
    so that it carries the moment, rows arrive in order, and PostgreSQL finds the partition by it.
    """

    id = models.UUIDField(_("reference"), primary_key=True, editable=False)
    at = models.DateTimeField(_("time"))
    reason = models.CharField(_("reason"), max_length=32, blank=True)  # empty: a token was issued
    # What the refusal names: a date, the parameter at fault, and what is wrong with it.
    since = models.DateTimeField(_("since"), null=True)
    parameter = models.CharField(_("parameter"), max_length=32, blank=True)
    detail = models.CharField(_("detail"), max_length=200, blank=True)
    client_id = models.CharField(_("client ID as sent"), max_length=64, blank=True)
    # No constraint and no index: the record stays when its system user is deleted, and a system
    # user's logins are found by its client id.
    system_user = models.ForeignKey(
        SystemUser,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("system user"),
    )
    secret_id = models.BigIntegerField(_("secret"), null=True)
    subject = models.CharField(_("represented taxpayer"), max_length=64, blank=True)
    actor = models.CharField(_("intermediary"), max_length=64, blank=True)
    scope = models.CharField(_("scope"), max_length=255, blank=True)
    kid = models.CharField(_("key ID"), max_length=43, blank=True)
    source_address = models.GenericIPAddressField(_("source address"), null=True)
    user_agent = models.CharField(_("user agent"), max_length=200, blank=True)

    class Meta:
        db_table = "login_events"
        verbose_name = _("login")
        verbose_name_plural = _("logins")
        default_permissions: ClassVar = VIEW_ONLY
        ordering: ClassVar = ["-id"]
        # Every index ends with the key, so that a list of anything comes newest first from it.
        indexes: ClassVar = [
            models.Index(fields=["client_id", "-id"], name="login_by_client"),
            models.Index(fields=["subject", "-id"], name="login_by_subject"),
            models.Index(fields=["source_address", "-id"], name="login_by_address"),
            # Only logins on behalf of another taxpayer have an entry.
            models.Index(
                fields=["actor", "-id"], name="login_by_actor", condition=~models.Q(actor="")
            ),
            models.Index(
                fields=["reason", "-id"],
                name="login_by_reason",
                condition=~models.Q(reason=""),
            ),
            # The latest refusals of known clients, read only from the index. A login that is
            # granted has no entry in it, and pays nothing for it.
            models.Index(
                fields=["-id", "system_user", "reason", "at"],
                name="login_refused_lately",
                condition=~models.Q(reason="") & models.Q(system_user__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_issued(self) -> bool:
        return not self.reason

    @property
    def is_on_behalf(self) -> bool:
        """Whether `onbehalfof` was sent: then the actor is stored once a secret matched."""
        return bool(self.actor)

    @property
    def jti(self) -> uuid.UUID | None:
        return self.id if self.is_issued else None


class SigningKey(models.Model):
    """A key that signs access tokens. Its private part is encrypted (contract 2)."""

    # Workers that start together all try to insert generation 1: one wins, the others read it.
    generation = models.PositiveIntegerField(_("generation"), unique=True)
    kid = models.CharField(_("key ID"), max_length=43, unique=True)
    alg = models.CharField(_("algorithm"), max_length=8)
    public_jwk = models.JSONField(_("public key"))
    private_key = models.BinaryField(editable=False)
    created_at = models.DateTimeField(_("published"))
    signs_from = models.DateTimeField(_("signs from"))
    compromised_at = models.DateTimeField(_("compromised"), null=True)

    class Meta:
        db_table = "signing_keys"
        verbose_name = _("signing key")
        verbose_name_plural = _("signing keys")
        default_permissions: ClassVar = VIEW_ONLY
        ordering: ClassVar = ["-generation"]

    def __str__(self) -> str:
        return self.kid


class RevokedToken(NoPage):
    """A token that its client has ended, until it would have expired anyway (RFC 7009)."""

    jti = models.UUIDField(primary_key=True, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField()

    class Meta(NoPage.Meta):
        db_table = "revoked_tokens"
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="revoked_token_by_end")]


class _UsedOnce(NoPage):
    id = models.UUIDField(primary_key=True, editable=False)
    expires_at = models.DateTimeField()

    class Meta(NoPage.Meta):
        abstract = True


class UsedAssertion(_UsedOnce):
    """A client assertion that was used (`ClientAssertion.use_id`), until it expires (RFC 7523)."""

    class Meta(_UsedOnce.Meta):
        db_table = "used_assertions"
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="used_assertion_by_end")]


class UsedProof(_UsedOnce):
    """A DPoP proof that was used (`Proof.use_id`), until it would be too old (RFC 9449)."""

    class Meta(_UsedOnce.Meta):
        db_table = "used_proofs"
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="used_proof_by_end")]


class FailureBucket(NoPage):
    """Failures of all callers whose keyed hash is this number (`tokens.rate_limits.backoff`)."""

    id = models.PositiveIntegerField(primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    retry_at = models.DateTimeField()  # the next failure is checked from this moment on

    class Meta(NoPage.Meta):
        db_table = "failure_buckets"


class ThrottledCaller(NoPage):
    """A client, an address, or both, with the first denial of the hour that was remembered."""

    hour = models.DateTimeField()
    cause = models.CharField(max_length=16)  # a ThrottleCause
    client_id = models.CharField(max_length=64, blank=True)
    source = models.CharField(max_length=43, blank=True)  # the address, or its IPv6 network
    at = models.DateTimeField()
    reference = models.UUIDField()  # of that denial; the others of the hour have no record

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


class LoginCount(NoPage):
    """How many logins of one hour ended in one way; an empty reason: a token was issued."""

    hour = models.DateTimeField()
    reason = models.CharField(max_length=32, blank=True)
    logins = models.PositiveBigIntegerField()

    class Meta(NoPage.Meta):
        db_table = "login_counts"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["hour", "reason"], name="login_counted_once")
        ]


class CountingMark(NoPage):
    """How far the logins are counted: one row, locked while a process counts."""

    next_id = models.UUIDField()  # every event below it is in a LoginCount

    class Meta(NoPage.Meta):
        db_table = "login_counting_mark"
