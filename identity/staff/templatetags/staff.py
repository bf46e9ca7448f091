"""Filters for all staff pages: date and time, and links to records.

Imports nothing of unfold: unfold renders widgets, and so loads this library, when it is imported.
"""

import re
from typing import Any

from django.template import Library
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from identity.staff.display import evidence_text, moment, record_url
from identity.staff.sessions.limits import seconds_left

register = Library()
register.filter(moment)
register.filter(record_url)
register.filter(evidence_text)


@register.simple_tag(takes_context=True)
def session_seconds(context: dict[str, Any]) -> int:
    """How many seconds the session lasts if nothing more is requested."""
    return seconds_left(context["request"])


@register.filter
def capital_label(cell: SafeString) -> SafeString:
    """A cell of a list of the theme; on a phone its label stands before it."""
    label = re.compile(r'(?<=data-label=").')
    return mark_safe(label.sub(lambda first: first[0].upper(), cell, count=1))  # noqa: S308 - it is


@register.filter
def kind_title(secret: Any) -> str:
    """Secret, Key or Certificate."""
    return capfirst(_(secret.kind))
