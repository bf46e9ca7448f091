"""What every change asks of the person who wants it, and how it says no."""

from collections.abc import Collection
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from taxpayers.credentials import without_secrets

LONGEST_NAME = 255
LONGEST_REASON = 500


class ServiceError(Exception):
    """A change that cannot be made: one clear line for the person who asked, with what to do."""


def format_moment(moment: datetime) -> str:
    """The moment as staff read it: in the authority's time zone, to the minute."""
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


def validate_text(text: str, what: str, longest: int) -> str:
    """The text without outer blanks, and without any client secret that was pasted into it.

    Raises ServiceError if it is blank, too long or unprintable.
    """
    stripped = without_secrets(text.strip())
    if not stripped:
        raise ServiceError(_("Give {what}: it is missing or blank.").format(what=what))
    if len(stripped) > longest:
        raise ServiceError(
            _("Shorten {what} to {longest} characters: it has {length}.").format(
                what=what, longest=longest, length=len(stripped)
            )
        )
    if not stripped.isprintable():
        raise ServiceError(
            _("Write {what} in one line without control characters.").format(what=what)
        )
    return stripped


def validate_name(name: str) -> str:
    """A name of a taxpayer or system user. Raises ServiceError as `validate_text`."""
    return validate_text(name, _("a name"), LONGEST_NAME)


def validate_reason(reason: str) -> str:
    """Why a change is made. Raises ServiceError as `validate_text`."""
    return validate_text(reason, _("a reason"), LONGEST_REASON)


def validate_end(end: datetime | None, what: str, at: datetime) -> datetime | None:
    """A last moment that is still to come; None: no end. Raises ServiceError if it has passed."""
    if end is not None and end <= at:
        raise ServiceError(
            _("Choose a later date: {what} would end {moment}, in the past.").format(
                what=what, moment=format_moment(end)
            )
        )
    return end


def validate_known(given: Collection[str], known: Collection[str], what: str) -> list[str]:
    """What is given, sorted, each once. Raises ServiceError if that is nothing or not all known."""
    names = sorted(set(given))
    unknown = [name for name in names if name not in known]
    if names and not unknown:
        return names
    fault = (
        _("There is no {what} {names}. Known are: {known}.")
        if unknown
        else _("Give at least one {what}. Known are: {known}.")
    )
    listed = ", ".join(sorted(known)) or _("none")
    raise ServiceError(fault.format(what=what, names=", ".join(unknown), known=listed))
