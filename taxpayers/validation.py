"""Validates what people enter for a change; a wrong value raises ServiceError."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _, gettext_lazy, gettext_noop

from taxpayers.evidence import NEEDED, Evidence, EvidenceKind
from taxpayers.identifiers import ROB_PATTERN, TIN_PATTERN, MalformedIdentifier, Notation
from taxpayers.moments import format_moment
from taxpayers.redaction import hide_marked_secrets, hide_secrets

MAX_NAME_LENGTH = 255
MAX_REASON_LENGTH = 500
MAX_EVIDENCE_LENGTH = 128  # of each of its texts
_A_NAME = gettext_lazy("a name")  # read for a fault only: many rows have none
# Not everybody reads regular expressions. Another country's pattern is shown.
_DESCRIPTIONS = {
    TIN_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters and digits"),
    ROB_PATTERN: gettext_noop("the {kind} must be 5 to 20 letters, digits and hyphens"),
}


class ServiceError(Exception):
    """A change that cannot be made: one line for the person who asked, with what to do.

    `text` is English; it is translated if the catalogues have it, then filled with `values`. For
    programs: a code that never changes, and the field at fault, by each of its names, the most
    specific first.
    """

    def __init__(
        self, text: str = "", code: str = "refused", /, *fields: str, **values: object
    ) -> None:
        translated = _(text) if text else ""
        super().__init__(translated.format(**values) if values else translated)
        self.code, self.fields = code, fields


def refuse_if(reason: str, *code_and_fields: str) -> None:
    """Raises ServiceError with this reason, as pages show it; empty: nothing happens."""
    if reason:
        raise ServiceError(reason, *code_and_fields)


def taxpayer_notation() -> Notation:
    """How this country writes a TIN and a ROB number."""
    return Notation(tin=settings.TIN_PATTERN, rob=settings.ROB_PATTERN)


def rule_of(fault: MalformedIdentifier) -> str:
    """The rule that an identifier breaks, without a full stop, in the active language."""
    text = _DESCRIPTIONS.get(fault.pattern, fault.text)
    return _(text).format(kind=_(fault.kind), pattern=fault.pattern)


def validate_text(text: str, what: object, longest: int, *fields: str) -> str:
    """The text without outer blanks and pasted secrets. Raises ServiceError."""
    stripped = hide_marked_secrets(text.strip())
    if not stripped:
        raise ServiceError("Give {what}: it is missing or blank.", "blank", *fields, what=what)
    if len(stripped) > longest:
        raise ServiceError(
            "Shorten {what} to {longest} characters: it has {length}.",
            "max_length",
            *fields,
            what=what,
            longest=longest,
            length=len(stripped),
        )
    if not stripped.isprintable():
        raise ServiceError(
            "Write {what} in one line without control characters.",
            "unprintable",
            *fields,
            what=what,
        )
    return stripped


def validate_name(name: str) -> str:
    """A name of a taxpayer or system user. Raises ServiceError as `validate_text`."""
    return validate_text(name, _A_NAME, MAX_NAME_LENGTH, "name")


def validate_reason(reason: str) -> str:
    """Why a change is made, without anything that could be a secret. Raises as `validate_text`."""
    what = _("a reason")
    given = validate_text(reason, what, MAX_REASON_LENGTH, "reason")
    return validate_text(hide_secrets(given), what, MAX_REASON_LENGTH, "reason")


def reason_of_import(source: str) -> str:
    """Why the rows of this file are registered: people paste into names of files, too."""
    return hide_marked_secrets(f"file {source}")[:MAX_REASON_LENGTH]


def validate_end(end: datetime | None, what: str, at: datetime, *fields: str) -> datetime | None:
    """A last moment in the future; None: no end. Raises ServiceError if it has passed."""
    if end is not None and end <= at:
        raise ServiceError(
            "Choose a later date: {what} would end {moment}, in the past.",
            "in_the_past",
            *fields,
            what=what,
            moment=format_moment(end),
        )
    return end


def validate_known(
    given: Collection[str], known: Collection[str], what: str, *fields: str
) -> list[str]:
    """The names, sorted, each once. Raises ServiceError if there is none or one is unknown."""
    names = sorted(set(given))
    unknown = [name for name in names if name not in known]
    if names and not unknown:
        return names
    fault, code = (
        (_("There is no {what} {names}. Choose from: {known}."), "unknown_value")
        if unknown
        else (_("Give at least one {what}. Choose from: {known}."), "empty")
    )
    listed = ", ".join(sorted(known)) or _("none")
    raise ServiceError(fault, code, *fields, what=what, names=", ".join(unknown), known=listed)


def validate_evidence(evidence: Evidence | None, at: datetime) -> dict[str, str] | None:
    """What is stored of it; None: none, which EVIDENCE_REQUIRED forbids. Raises ServiceError."""
    if evidence is None:
        if settings.EVIDENCE_REQUIRED:
            raise ServiceError(
                "Say who approved it: give the number of the paper form, or from a portal who"
                " signed in and how."
            )
        return None
    if evidence.at is not None and evidence.at > at:
        raise ServiceError("The evidence is of a moment in the future.")
    texts: dict[str, Any] = {
        name: validate_text(value, _titles()[name], MAX_EVIDENCE_LENGTH)
        for name in _titles()
        if (value := getattr(evidence, name)) or name in NEEDED[EvidenceKind(evidence.kind)]
    }
    return replace(evidence, **texts).stored(at)


def _titles() -> dict[str, str]:
    return {
        "approved_by": _("the opaque id of the person who approved"),
        "capacity": _("the capacity of the person who approved"),
        "sign_in_method": _("how the person signed in"),
        "sign_in_level": _("the level of the sign-in"),
        "words_version": _("the version of the words shown"),
        "words_hash": _("the hash of the words shown"),
        "paper_form": _("the number of the paper form"),
    }
