"""The words that the confirm page shows, and their hash: what the person has agreed to.

They are made from the request and the registry, in one language. From both, and the
version, the same text is made again.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import formats, timezone
from django.utils.translation import get_language, gettext as _

from taxpayers.actions import marked
from taxpayers.models import PermissionCode, PermissionRequest, SystemUser, Taxpayer
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.permission_requests import present_permissions

VERSION = "confirm-1"  # another one for each change of these texts
_MOST_SYSTEMS = 20
# As codes and scopes are described at the start; others are shown as they are described.
_DESCRIBED = (
    marked("Submit documents in the taxpayer's name"),
    marked("View the taxpayer's documents"),
    marked("Cancel documents that the taxpayer issued"),
    marked("Reject documents that the taxpayer received"),
    marked("The e-invoicing APIs"),
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
    title: str  # of the codes
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the hash is of: one sentence a line."""
        codes = (f"{code}: {meaning}" for code, meaning in self.codes)
        rest = (self.period, self.effect, *self.present)
        return "\n".join((self.question, *self.warnings, *codes, *rest))

    @property
    def hash(self) -> str:
        return f"sha256:{hashlib.sha256(self.text.encode()).hexdigest()}"


def words_of(row: PermissionRequest, at: datetime, until: datetime | None) -> Words:
    """In the active language; `until`: when what is approved here ends, None: it does not."""
    role = row.intermediary
    own, known, present = _connection(row) if role is None else _permission(row, role.taxpayer, at)
    start = _moment(row.valid_from) if row.valid_from else _("now, once you approve")
    end = _moment(until) if until else _("no end; you can end it any day")
    return Words(
        version=f"{VERSION}/{get_language() or 'en'}",
        codes=tuple((code, _(known.get(code) or code)) for code in row.codes.split()),
        period=_("From: {start}. Until: {end}.").format(start=start, end=end),
        present=tuple(present) or (_("None.") if row.is_connection else _("Nothing."),),
        **own,
    )


_Own = tuple[dict[str, Any], Mapping[str, str], list[str]]


def _permission(row: PermissionRequest, agent: Taxpayer, at: datetime) -> _Own:
    """What only it says, what its codes permit, and what is granted today."""
    codes = PermissionCode.objects.filter(code__in=row.codes.split())
    if row.replaces:
        effect = _("If you approve, this replaces what you permit this intermediary today:")
    else:
        effect = _("If you approve, this is added to what you permit this intermediary today:")
    question = _("May {name} ({identifier}) act for {taxpayer} in e-invoicing?").format(
        name=agent.name, identifier=agent.identifier, taxpayer=row.asked
    )
    own = {"question": question, "title": _("What it may do"), "effect": effect}
    return own, dict(codes.values_list("code", "description")), _present(row, at)


def _connection(row: PermissionRequest) -> _Own:
    """The same: what its scopes open, and which systems log in today."""
    question = _("May an ERP system log in as {taxpayer}, with its own key?")
    own = {
        "question": question.format(taxpayer=row.asked),
        "warnings": (
            _("It calls itself: {name}").format(name=row.name),
            _("The fingerprint of its key: {fingerprint}").format(fingerprint=row.fingerprint),
            _(
                "Approve only if you connect your own ERP system at this moment, and it shows this"
                " fingerprint. If someone sent you the link, or asks you by telephone, decline."
            ),
        ),
        "title": _("What it can use, for everything that the taxpayer may do"),
        "effect": _("If you approve, it is added to the systems that log in as the taxpayer:"),
    }
    known = {name: scope["description"] for name, scope in settings.SCOPES.items()}
    users = SystemUser.objects.filter(taxpayer__tin=row.tin, taxpayer__rob=row.rob, blocked_at=None)
    names = users.order_by("-pk").values_list("name", flat=True)  # the newest first
    return own, known, list(names[:_MOST_SYSTEMS])


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
