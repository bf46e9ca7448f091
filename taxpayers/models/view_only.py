"""Which of Django's default permissions the models have: to view.

Rows are changed only by services, so the other permissions are named after the changes: one for
each action of staff. Which role has which permission: identity/staff/accounts/roles.py.
"""

from typing import ClassVar

from django.db import models

VIEW_ONLY = ("view",)


class NoPage(models.Model):
    """A table that no page shows: there is no permission for it."""

    class Meta:
        abstract = True
        default_permissions: ClassVar = ()

    def __str__(self) -> str:
        return f"{self._meta.db_table} {self.pk}"
