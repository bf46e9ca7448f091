"""Checks the evidence of a grant, change or end of a permission, for every door."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from taxpayers.evidence import NEEDED, Evidence, EvidenceKind
from taxpayers.validation import ServiceError, validate_text

MAX_LENGTH = 128


def checked_evidence(evidence: Evidence | None, at: datetime) -> dict[str, str] | None:
    """What is stored of it; None: there is none, and EVIDENCE_REQUIRED does not ask for it.

    Raises ServiceError if it is missing, incomplete, or of the future.
    """
    if evidence is None:
        if settings.EVIDENCE_REQUIRED:
            raise ServiceError(
                _(
                    "Say who approved it: give the number of the paper form, or from a portal who"
                    " signed in and how."
                )
            )
        return None
    if evidence.at is not None and evidence.at > at:
        raise ServiceError(_("The evidence is of a moment in the future."))
    texts: dict[str, Any] = {
        name: validate_text(value, _titles()[name], MAX_LENGTH)
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
