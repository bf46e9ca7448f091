"""The words that the confirm page shows, and their hash: what the person has agreed to.

They are made from the request and the registry, in one language. From both, and the
version, the same text is made again.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.utils import formats, timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from taxpayers.actions import marked
from taxpayers.models import PermissionCode, PermissionRequest
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.permission_requests import present_permissions

VERSION = "confirm-1"  # another one for each change of these texts
# As the registry describes the codes that it starts with; others are shown as they are described.
_DESCRIBED = (
    marked("Submit documents in the taxpayer's name"),
    marked("View the taxpayer's documents"),
    marked("Cancel documents that the taxpayer issued"),
    marked("Reject documents that the taxpayer received"),
)


@dataclass(frozen=True, slots=True)
class Words:
    """Every sentence about the request, in the order of the page."""

    version: str
    question: str
    codes: tuple[tuple[str, str], ...]  # a code, and what it permits
    period: str
    effect: str
    present: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the hash is of: one sentence a line."""
        codes = (f"{code}: {meaning}" for code, meaning in self.codes)
        return "\n".join((self.question, *codes, self.period, self.effect, *self.present))

    @property
    def hash(self) -> str:
        return f"sha256:{hashlib.sha256(self.text.encode()).hexdigest()}"


def words_of(row: PermissionRequest, at: datetime) -> Words:
    """In the active language."""
    agent = row.intermediary.taxpayer
    described = dict(
        PermissionCode.objects.filter(code__in=row.codes.split()).values_list("code", "description")
    )
    start = _moment(row.valid_from) if row.valid_from else _("now, once you approve")
    end = _moment(row.valid_until) if row.valid_until else _("no end; you can end it any day")
    if row.replaces:
        effect = _("If you approve, this replaces what you permit this intermediary today:")
    else:
        effect = _("If you approve, this is added to what you permit this intermediary today:")
    present = tuple(_present(row, at))
    return Words(
        f"{VERSION}/{get_language() or 'en'}",
        _("May {name} ({identifier}) act for {taxpayer} in e-invoicing?").format(
            name=agent.name, identifier=agent.identifier, taxpayer=row.asked
        ),
        tuple((code, _(described.get(code) or code)) for code in row.codes.split()),
        _("From: {start}. Until: {end}.").format(start=start, end=end),
        effect,
        present or (_("Nothing."),),
    )


def _moment(value: datetime) -> str:
    return formats.date_format(timezone.localtime(value), "j F Y, H:i")


def _present(row: PermissionRequest, at: datetime) -> list[str]:
    return [
        "{codes} ({end})".format(
            codes=", ".join(codes_of(granted)),
            end=_("until {moment}").format(moment=_moment(granted.valid_until))
            if granted.valid_until
            else _("no end date"),
        )
        for granted in present_permissions(row, at)
    ]
