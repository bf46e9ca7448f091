"""Uploaded files between preview and confirmation."""

from django.db import models

from taxpayers.models.view_only import NoPage


class UploadedFile(NoPage):
    """A file that waits for confirmation by the person who sent it."""

    name = models.CharField(max_length=255)
    content = models.BinaryField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta(NoPage.Meta):
        db_table = "uploaded_files"
