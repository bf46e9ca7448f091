"""Uploaded files between preview and confirmation."""

from typing import ClassVar

from django.db import models


class UploadedFile(models.Model):
    """A file that waits for confirmation by the person who sent it."""

    name = models.CharField(max_length=255)
    content = models.BinaryField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        db_table = "uploaded_files"
        default_permissions: ClassVar = ()  # no page lists it

    def __str__(self) -> str:
        return self.name
