"""What every change asks of the person who wants it, and how it says no."""

from collections.abc import Collection
from datetime import datetime

from django.utils import timezone

from taxpayers.credentials import without_secrets

LONGEST_NAME = 255
LONGEST_REASON = 500


class Impossible(Exception):
    """A change that cannot be made: one clear line for the person who asked, with what to do."""


def said(moment: datetime) -> str:
    """The moment as staff read it: in the authority's time zone, to the minute."""
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


def checked_text(text: str, what: str, longest: int) -> str:
    """The text without outer blanks, and without any client secret that was pasted into it.

    Raises Impossible if it is blank, too long or unprintable.
    """
    stripped = without_secrets(text.strip())
    if not stripped:
        raise Impossible(f"Give {what}: it is missing or blank.")
    if len(stripped) > longest:
        raise Impossible(f"Shorten {what} to {longest} characters: it has {len(stripped)}.")
    if not stripped.isprintable():
        raise Impossible(f"Write {what} in one line without control characters.")
    return stripped


def checked_name(name: str) -> str:
    """A name of a taxpayer or system user. Raises Impossible as `checked_text`."""
    return checked_text(name, "a name", LONGEST_NAME)


def checked_reason(reason: str) -> str:
    """Why a change is made. Raises Impossible as `checked_text`."""
    return checked_text(reason, "a reason", LONGEST_REASON)


def checked_end(end: datetime | None, what: str, at: datetime) -> datetime | None:
    """A last moment that is still to come; None: no end. Raises Impossible if it has passed."""
    if end is not None and end <= at:
        raise Impossible(f"Choose a later date: {what} would end {said(end)}, in the past.")
    return end


def checked_known(given: Collection[str], known: Collection[str], what: str) -> list[str]:
    """What is given, sorted, each once. Raises Impossible if that is nothing or not all known."""
    names = sorted(set(given))
    unknown = [name for name in names if name not in known]
    if names and not unknown:
        return names
    fault = f"There is no {what} {', '.join(unknown)}" if unknown else f"Give at least one {what}"
    raise Impossible(f"{fault}. Known are: {', '.join(sorted(known)) or 'none'}.")
