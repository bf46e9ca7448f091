"""How logins ended, in the staff's words: the table of refusals, translated (contract 1)."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from identity.staff.framework.badges import Badge
from taxpayers.credential_kind import CredentialKind
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, kind_named_by

ISSUED = _("Token issued")


class StaffText(NamedTuple):
    """What is wrong, and who can fix it; both translated when they are shown."""

    what: Any
    who: Any


def staff_text_of(reason: str, kind: CredentialKind | None = None) -> StaffText:
    """The text of a recorded reason; one that this version does not know is shown as it is.

    `kind`: what the login was with; None: the text is for all kinds.
    """
    refusal = REFUSALS.get(reason)
    if refusal is None:
        return StaffText(reason, "")
    return StaffText(_(refusal.staff_text_of(kind)), _(refusal.fixed_by))


def badge_of_login(event: LoginEvent) -> Badge:
    """How the login ended, in a few words."""
    if event.is_issued:
        return Badge(ISSUED, "good")
    return Badge(staff_text_of(event.reason, kind_named_by(event.parameter)).what, "bad")
