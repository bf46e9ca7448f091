"""The public pages of the reasons for a refusal, to which its answer links (contract 1)."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_noop as _

from identity.developers.examples import as_text, refused_example
from identity.developers.pages import Page
from tokens.answers.description import describe_in_general
from tokens.answers.response import help_path
from tokens.refusals.table import REFUSALS, Check, ProtocolReason, Refusal

_REASONS = list(REFUSALS)


def error(request: HttpRequest, language: str, reason: str) -> HttpResponse:
    """`GET /errors/<reason>`."""
    return _page(reason)(request, language=language)


@cache
def _page(reason: str) -> Page:
    address = help_path(reason).removeprefix("/")
    return Page(address, "developers/error.html", partial(_context, reason))


def _list_context() -> Mapping[str, Any]:
    """Every reason, in the order in which a login is checked."""
    return {"title": gettext("Errors"), "rows": [_row(reason) for reason in _REASONS]}


all_errors = Page("errors/", "developers/errors.html", _list_context)


def _context(reason: str) -> Mapping[str, Any]:
    refusal, place = REFUSALS[reason], _REASONS.index(reason)
    return {
        **_row(reason),
        "causes": describe_in_general(reason, gettext),
        "question": refusal.check and gettext(refusal.check.question()),
        "number": refusal.check and list(Check).index(refusal.check) + 1,
        "checks": len(Check),
        "retry": gettext(_retry(reason, refusal)),
        "example": as_text(refused_example(reason, settings.AUTH_URL)),
        "before": _row(_REASONS[place - 1]) if place else None,
        "after": _row(_REASONS[place + 1]) if place + 1 < len(_REASONS) else None,
    }


def _row(reason: str) -> dict[str, Any]:
    refusal = REFUSALS[reason]
    return {
        "reason": str(reason),
        "title": gettext(refusal.staff_text),
        "status": refusal.status,
        "error": refusal.error,
        "fixed_by": gettext(refusal.fixed_by),
    }


def _retry(reason: str, refusal: Refusal) -> str:
    if reason == ProtocolReason.USE_DPOP_NONCE:
        return _("Yes, at once, with a new proof that has the nonce of this answer.")
    if refusal.status in (429, 503):
        return _("Yes, after as many seconds as Retry-After says; wait longer after each failure.")
    if refusal.status == 500:
        return _("Yes, and wait longer after each failure.")
    return _("No. The same request gets the same answer until the cause is fixed.")
