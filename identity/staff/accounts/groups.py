"""Gives the group of each role exactly its permissions: after every `migrate`."""

from collections.abc import Mapping

from django.contrib.auth.models import Group, Permission
from django.db import DEFAULT_DB_ALIAS, connections

from identity.staff.accounts.roles import ROLES, Role


def make_groups(database: str = DEFAULT_DB_ALIAS, roles: Mapping[str, Role] = ROLES) -> None:
    """Safe to repeat. Without the tables of `django.contrib.auth` there is nothing to do."""
    if Group._meta.db_table not in connections[database].introspection.table_names():
        return
    known = {
        f"{permission.content_type.app_label}.{permission.codename}": permission
        for permission in Permission.objects.using(database).select_related("content_type")
    }
    for name, role in roles.items():
        group, _ = Group.objects.using(database).get_or_create(name=name)
        group.permissions.set([known[full] for full in sorted(role.permissions) if full in known])
