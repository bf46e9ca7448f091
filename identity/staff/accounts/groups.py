"""Gives the group of each role exactly its permissions: after every `migrate`.

`migrate` makes the permissions to view. Those to act come from the actions (`ACTION_OF`).
"""

from collections.abc import Mapping

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, connections

from identity.staff.accounts.roles import ROLES, Role
from identity.staff.actions import ACTION_OF


def make_groups(database: str = DEFAULT_DB_ALIAS, roles: Mapping[str, Role] = ROLES) -> None:
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
    for name, role in roles.items():
        group, _ = Group.objects.using(database).get_or_create(name=name)
        group.permissions.set([known[full] for full in sorted(role.permissions) if full in known])
