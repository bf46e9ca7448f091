"""What an account may do: the group of each role, which `migrate` makes, and the backend."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connections

from identity.staff.accounts.roles import ROLES, must_be_separate, usable
from identity.staff.actions import ACTION_OF
from identity.staff.models import StaffAccount


def make_groups(database: str) -> None:
    """Safe to repeat. Without the tables of `django.contrib.auth` there is nothing to do."""
    if Group._meta.db_table not in connections[database].introspection.table_names():
        return
    known = {
        f"{permission.content_type.app_label}.{permission.codename}": permission
        for permission in Permission.objects.using(database).select_related("content_type")
    }
    for full, action in ACTION_OF.items():
        if full not in known:
            app = full.partition(".")[0]
            kind, _ = ContentType.objects.using(database).get_or_create(
                app_label=app, model=action.of or "change"
            )
            known[full] = Permission.objects.using(database).create(
                content_type=kind, codename=action.name, name=action.past
            )
    for name, role in ROLES.items():
        group, _ = Group.objects.using(database).get_or_create(name=name)
        group.permissions.set([known[full] for full in sorted(role.permissions) if full in known])


class StaffBackend(ModelBackend):
    """Django's own, but an account whose duties need two people only reads."""

    def get_user(self, user_id: int) -> StaffAccount | None:
        """As a StaffAccount, which asks this backend even if it is a superuser."""
        account = StaffAccount.objects.filter(pk=user_id).first()
        return account if account and self.user_can_authenticate(account) else None

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        held = super().get_all_permissions(user_obj, obj)
        is_exempt = user_obj.is_superuser and not settings.SECOND_PERSON_REQUIRED
        return held if is_exempt else set(usable(held))

    def only_reads(self, account: StaffAccount) -> bool:
        """Whether duties of this active account need two people, so that it can use none."""
        if account.is_superuser:
            return bool(settings.SECOND_PERSON_REQUIRED)
        return must_be_separate(super().get_all_permissions(account))
