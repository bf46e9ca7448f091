"""A value of any field as text for people."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from identity.staff.templatetags.staff import moment_text


def display_value(value: Any) -> str:
    """The value in the language of the reader; empty for none."""
    match value:
        case None:
            return ""
        case bool():
            return _("yes") if value else _("no")
        case list():
            return ", ".join(str(item) for item in value)
        case datetime():
            return moment_text(value)
        case _:
            return str(value)
