"""Uploaded files between preview and confirmation, each for the person who sent it."""

from datetime import datetime, timedelta

from taxpayers.models import UploadedFile
from taxpayers.services.history import Author

UPLOAD_LIFETIME = timedelta(days=1)


def save_upload(*, name: str, content: bytes, by: Author, at: datetime) -> UploadedFile:
    """Save the file for UPLOAD_LIFETIME; all expired ones are deleted."""
    UploadedFile.objects.filter(at__lt=at - UPLOAD_LIFETIME).delete()
    return UploadedFile.objects.create(name=name[:255], content=content, by=by.name[:150], at=at)


def find_upload(*, key: int, by: Author, at: datetime) -> UploadedFile | None:
    """The file, unless it has expired or somebody else sent it."""
    unexpired = UploadedFile.objects.filter(at__gte=at - UPLOAD_LIFETIME)
    return unexpired.filter(pk=key, by=by.name[:150]).first()


def delete_upload(upload: UploadedFile) -> None:
    """Delete it: it was confirmed."""
    upload.delete()
