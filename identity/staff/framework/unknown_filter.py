"""A query parameter that is no filter of the list."""

from django.contrib.admin.exceptions import DisallowedModelAdminLookup

_LONGEST_NAME = 60


class UnknownFilter(DisallowedModelAdminLookup):
    """`name` is shown to staff, cut; `list_url` is the list without filters."""

    def __init__(self, name: str, list_url: str) -> None:
        super().__init__("the list has no such filter")
        self.name = name[:_LONGEST_NAME]
        self.list_url = list_url
