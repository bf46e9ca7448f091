"""Staff accounts: Django's users as a record of ours, first passwords, and what waits."""

from datetime import datetime
from itertools import chain
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import User, UserManager
from django.db import models, transaction
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from identity.staff import actions
from taxpayers.management.command import author
from taxpayers.models import VIEW_ONLY
from taxpayers.services.history import ChangeContext, record_change

SUPERUSER = "superuser"


class StaffAccountManager(UserManager["StaffAccount"]):
    """Records what Django's command `createsuperuser` creates."""

    use_in_migrations = False

    @transaction.atomic
    def create_superuser(self, username: str, *args: Any, **fields: Any) -> "StaffAccount":
        """Only a command does this, so the author is the operator."""
        account = super().create_superuser(username, *args, **fields)
        context = ChangeContext(actions.CREATE_ACCOUNT, author(), timezone.now())
        record_change(account, context, after={"username": username, "role": SUPERUSER})
        return account


class StaffAccount(User):
    objects: ClassVar[StaffAccountManager] = StaffAccountManager()

    class Meta:
        proxy = True
        verbose_name = _("staff account")
        verbose_name_plural = _("staff accounts")
        default_permissions: ClassVar = VIEW_ONLY

    def __str__(self) -> str:
        return f"{self.name} ({self.username})" if self.name else self.username

    @property
    def history_label(self) -> str:
        """How the history names it: the user name first, because people search for that."""
        return f"{self.username} {self.name}".strip()

    @property
    def name(self) -> str:
        return self.get_full_name()

    @property
    def roles(self) -> list[str]:
        """More than one only if they were written by SQL."""
        return [SUPERUSER] if self.is_superuser else sorted(g.name for g in self.groups.all())

    @property
    def role(self) -> str:
        return ", ".join(self.roles)

    @property
    def permissions_held(self) -> frozenset[str]:
        """Of its groups and its own, also while it is not active; none of those of a superuser."""
        groups = (group.permissions.all() for group in self.groups.all())
        held = [*self.user_permissions.all(), *chain.from_iterable(groups)]
        return frozenset(f"{one.content_type.app_label}.{one.codename}" for one in held)

    @cached_property
    def permissions_usable(self) -> frozenset[str]:
        """What it may do, as the backend says: a superuser is asked there too, unlike in Django."""
        return frozenset(self.get_all_permissions())

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return obj is None and perm in self.permissions_usable

    def has_module_perms(self, app_label: str) -> bool:
        return any(name.startswith(f"{app_label}.") for name in self.permissions_usable)


class StaffSignIn(models.Model):
    """How one sign-in of a member of staff ended. An unknown name is not stored: it is empty."""

    SIGNED_IN, LOCKED_OUT = "signed in", "locked out"
    OUTCOMES: ClassVar = [
        (SIGNED_IN, _("Signed in")),
        ("sign-in failed", _("Wrong name, password or code")),
        (LOCKED_OUT, _("Locked out: too many attempts")),
        ("first password expired", _("First password expired")),
        ("no staff account", _("No staff account")),
    ]

    at = models.DateTimeField(_("time"), db_index=True)
    outcome = models.CharField(_("result"), max_length=32, choices=OUTCOMES)
    username = models.CharField(_("user name"), max_length=150, blank=True, db_index=True)
    address = models.GenericIPAddressField(_("source address"), null=True)
    program = models.CharField(_("program"), max_length=200, blank=True)

    class Meta:
        db_table = "staff_sign_ins"
        verbose_name = _("sign-in of staff")
        verbose_name_plural = _("sign-ins of staff")
        default_permissions: ClassVar = VIEW_ONLY
        indexes: ClassVar = [
            models.Index(fields=["address", "at"], name="staff_sign_in_by_address")
        ]

    def __str__(self) -> str:
        return f"{self.username} {self.outcome}".strip()


class FirstPassword(models.Model):
    """An account whose password was generated: its owner must replace it at the next sign-in."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="first_password"
    )
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "first_passwords"
        default_permissions: ClassVar = ()

    def __str__(self) -> str:
        return str(self.user)


class WaitingChange(models.Model):
    """What one person asked for a staff account, and a second person has not confirmed yet."""

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="waiting_changes"
    )
    action = models.CharField(max_length=64)
    role = models.CharField(max_length=150, blank=True)  # the new one; empty: no new role
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()  # after it this cannot be confirmed, only asked for again
    reason = models.CharField(max_length=500)

    class Meta:
        db_table = "waiting_changes"
        default_permissions: ClassVar = ()
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "action"], name="one_waiting_change_of_a_kind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.role}".strip()

    def is_over(self, at: datetime) -> bool:
        return self.expires_at <= at
