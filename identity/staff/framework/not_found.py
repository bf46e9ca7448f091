"""What a page or a list does not have."""

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.http import Http404


class RecordNotFound(Http404):
    """Its text is shown to staff. The text of any other Http404 is for developers, and is not."""


_LONGEST_NAME = 60


class UnknownFilter(DisallowedModelAdminLookup):
    """`name` is shown to staff, cut; `list_url` is the list without filters."""

    def __init__(self, name: str, list_url: str) -> None:
        super().__init__("the list has no such filter")
        self.name = name[:_LONGEST_NAME]
        self.list_url = list_url
