"""Where the management API is: below the address of the staff, never at that of clients."""

from django.conf import settings

BASE_PATH = "api/v1/management"


def base_url() -> str:
    """The address of the staff, without a slash at its end."""
    address: str = settings.STAFF_URL
    return address.rstrip("/")
