"""The public page of a reason: its path, and the header that leads there (contract 1)."""

from django.conf import settings


def help_path(reason: str) -> str:
    """The path of the page below `AUTH_URL`."""
    return f"/errors/{reason}"


def help_url(reason: str) -> str:
    """The whole address of the page."""
    return f"{settings.AUTH_URL}{help_path(reason)}"


def help_link(reason: str) -> str:
    """The value of the header Link (RFC 8288) that every refusal carries."""
    return f'<{help_url(reason)}>; rel="help"'
