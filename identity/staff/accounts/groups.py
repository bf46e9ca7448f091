"""Creates the groups of the staff from the table of roles, for migrations."""

from collections.abc import Mapping
from typing import Any

from django.apps.registry import Apps

from identity.staff.accounts.roles import ROLES, Role


def make_groups(apps: Apps, roles: Mapping[str, Role] = ROLES) -> None:
    """Give each role's group exactly its permissions; safe to repeat.

    Django creates permissions only after all migrations, so a new database has none yet: missing
    ones are created here, and Django then finds them. `apps` are those of the migration: what a
    later migration adds is given by the `make_groups` of that migration.
    """
    group_model: Any = apps.get_model("auth", "Group")
    for name, role in roles.items():
        group, _ = group_model.objects.get_or_create(name=name)
        given = [_permission(apps, full) for full in sorted(role.permissions)]
        group.permissions.set([permission for permission in given if permission is not None])


def _permission(apps: Apps, full_name: str) -> Any:
    """None if the models of `apps` have no such permission yet."""
    app_label, codename = full_name.split(".")
    found = _permissions_of(apps, app_label).get(codename)
    if found is None:
        return None
    model, name = found
    content_types: Any = apps.get_model("contenttypes", "ContentType").objects
    permissions: Any = apps.get_model("auth", "Permission").objects
    content_type, _ = content_types.get_or_create(app_label=app_label, model=model)
    permission, _ = permissions.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return permission


def _permissions_of(apps: Apps, app_label: str) -> dict[str, tuple[str, str]]:
    """Every permission of an app's models by codename: its model and its display name."""
    found: dict[str, tuple[str, str]] = {}
    for model in apps.get_models():
        if model._meta.app_label != app_label:
            continue
        opts = model._meta
        named = {f"view_{opts.model_name}": f"Can view {opts.verbose_name_raw}"}
        named |= {codename: str(name) for codename, name in opts.permissions}
        found |= {codename: (str(opts.model_name), name) for codename, name in named.items()}
    return found
