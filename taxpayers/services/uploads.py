"""Files that wait between their preview and their confirmation, for who sent them (contract 4)."""

from datetime import datetime, timedelta

from taxpayers.models import UploadedFile
from taxpayers.services.history import Author

KEPT_FOR = timedelta(days=1)


def keep_upload(*, name: str, content: bytes, by: Author, at: datetime) -> UploadedFile:
    """The file, kept for a day; what others left waiting for longer is forgotten."""
    UploadedFile.objects.filter(at__lt=at - KEPT_FOR).delete()
    return UploadedFile.objects.create(name=name[:255], content=content, by=by.name[:150], at=at)


def find_upload(*, key: int, by: Author, at: datetime) -> UploadedFile | None:
    """The file, if it still waits and this person sent it."""
    return UploadedFile.objects.filter(pk=key, by=by.name[:150], at__gte=at - KEPT_FOR).first()


def forget_upload(upload: UploadedFile) -> None:
    """It was confirmed or given up."""
    upload.delete()
