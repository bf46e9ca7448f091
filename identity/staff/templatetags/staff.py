"""Filters for all staff pages: date and time, links to records, what limits a system user.

Imports nothing of unfold: unfold renders widgets, and so loads this library, when it is imported.
"""

import re
from typing import Any

from django.template import Library
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _, ngettext

from identity.staff.display import evidence_text, moment, record_url
from identity.staff.sessions import seconds_left
from taxpayers.models import SystemUser

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


_SHOWN = 10


@register.filter
def limit_sentences(row: SystemUser) -> list[str]:
    """What it may do for others at most; empty if it is not limited."""
    sentences = []
    if row.allowed_permissions:
        codes = ", ".join(row.allowed_permissions.split())
        text = _("On behalf of others it gets these permissions at most: {codes}.")
        sentences.append(text.format(codes=codes))
    if row.allowed_taxpayers:
        taxpayers = row.allowed_taxpayers.split()
        listed = ", ".join(taxpayers[:_SHOWN]) + (" …" if taxpayers[_SHOWN:] else "")
        text = ngettext(
            "It may act for {count} taxpayer only: {listed}.",
            "It may act for {count} taxpayers only: {listed}.",
            len(taxpayers),
        )
        sentences.append(text.format(count=len(taxpayers), listed=listed))
    if row.is_limited:
        sentences.append(_("It gets no token for its own taxpayer."))
    return sentences
