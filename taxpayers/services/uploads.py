"""Uploaded files between preview and confirmation, each for the person who sent it."""

from datetime import datetime, timedelta

from taxpayers.models import UploadedFile
from taxpayers.redaction import hide_marked_secrets
from taxpayers.services.history import Author

UPLOAD_LIFETIME = timedelta(days=1)
MAX_UPLOADS = 3


def save_upload(*, name: str, content: bytes, by: Author, at: datetime) -> UploadedFile:
    """Save it for UPLOAD_LIFETIME, and of one person only the newest MAX_UPLOADS."""
    UploadedFile.objects.filter(at__lt=at - UPLOAD_LIFETIME).delete()
    own = UploadedFile.objects.filter(by=by.name)
    older = own.order_by("-pk").values_list("pk", flat=True)[MAX_UPLOADS - 1 :]
    own.filter(pk__in=list(older)).delete()
    name = hide_marked_secrets(name)[:255]
    return UploadedFile.objects.create(name=name, content=content, by=by.name, at=at)


def find_upload(*, key: int, by: Author, at: datetime) -> UploadedFile | None:
    """The file, unless it has expired or another person sent it."""
    unexpired = UploadedFile.objects.filter(at__gte=at - UPLOAD_LIFETIME)
    return unexpired.filter(pk=key, by=by.name).first()
