"""A saved view: the filters of a list under a name, for one person."""

from typing import ClassVar

from django.conf import settings
from django.db import models

MAX_NAME_LENGTH, MAX_QUERY_LENGTH = 60, 1_000


class SavedView(models.Model):
    """Of no concern to the registry, so it is not in the history; it ends with the account."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    list_name = models.CharField(max_length=64)  # for example `tokens.loginevent`
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    query = models.CharField(max_length=MAX_QUERY_LENGTH)  # the query string of the list

    class Meta:
        app_label = "staff"
        db_table = "staff_saved_views"
        default_permissions: ClassVar = ()  # everybody has their own, for the lists they may see
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["owner", "list_name", "name"], name="saved_view_named_once"
            )
        ]

    def __str__(self) -> str:
        return self.name
