"""The 404 for a record that does not exist."""

from django.http import Http404


class RecordNotFound(Http404):
    """Its text is shown to staff. The text of any other Http404 is for developers, and is not."""
