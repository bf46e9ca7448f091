"""What limits a system user, in sentences: for its page, and as of a date."""

from django.template import Library
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taxpayers.models import SystemUser

register = Library()

_SHOWN = 10


@register.filter
def limit_sentences(row: SystemUser) -> list[str]:
    """What it may do for others at most; empty if it is not limited."""
    sentences = []
    if row.allowed_permissions:
        codes = ", ".join(row.allowed_permissions.split())
        sentences.append(
            _("On behalf of others it gets these permissions at most: {codes}.").format(codes=codes)
        )
    if row.allowed_taxpayers:
        taxpayers = row.allowed_taxpayers.split()
        listed = ", ".join(taxpayers[:_SHOWN]) + (" …" if taxpayers[_SHOWN:] else "")
        sentences.append(
            ngettext(
                "It may act for {count} taxpayer only: {listed}.",
                "It may act for {count} taxpayers only: {listed}.",
                len(taxpayers),
            ).format(count=len(taxpayers), listed=listed)
        )
    if row.is_limited:
        sentences.append(_("It gets no token for its own taxpayer."))
    return sentences
