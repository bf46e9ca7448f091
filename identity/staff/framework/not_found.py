"""What staff read where something is not there."""

from django.http import Http404


class RecordNotFound(Http404):
    """Its text is shown; that of any other Http404 was written for developers, and is not."""
