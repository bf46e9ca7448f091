"""What a list of logins without a row says: who has such a name, or why there is no such login.

Logins have identifiers and no names. Of a reference, filters may hide the login, or it was never
recorded.
"""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from identity.staff.display import moment_text
from identity.staff.framework.search import TooGeneral, limited_search
from identity.staff.logins.reasons import caller_texts
from identity.staff.logins.throttled import throttled_with
from taxpayers.models import Taxpayer
from tokens.login_events.reference import CALLER_TEXTS, explain_missing, reference_in
from tokens.models import LoginEvent

_NOTICE = "staff/logins/named_taxpayers.html"
MAX_SHOWN = 10


def name_conditions(term: str) -> list[Q]:
    """Logins for and by the taxpayer with such a name; none if there are several, or none.

    Raises TooGeneral.
    """
    taxpayers = _named(term)[:2]
    if len(taxpayers) != 1:
        return []
    identifier = str(taxpayers[0].identifier)
    return [Q(subject=identifier), Q(actor=identifier)]


def named_context(term: str) -> dict[str, Any]:
    """What a list without a login shows: the taxpayers with such a name, if there are any."""
    try:
        taxpayers = _named(term)
    except TooGeneral:
        return {}
    if not taxpayers:
        return {}
    has_more = len(taxpayers) > MAX_SHOWN
    return {"list_notice": _NOTICE, "named": taxpayers[:MAX_SHOWN], "has_more_named": has_more}


def rows_named(term: str) -> "QuerySet[Taxpayer]":
    """Those with such a name."""
    return Taxpayer.objects.filter(name__has_words=term)


def _named(term: str) -> list[Taxpayer]:
    with limited_search():
        return list(rows_named(term)[: MAX_SHOWN + 1])


_NOT_RECORDED = "staff/logins/not_recorded.html"


def not_found_context(term: str, at: datetime) -> dict[str, Any]:
    """What a list without a login shows; nothing unless the term has a reference."""
    reference = reference_in(term)
    if reference is None:
        return {}
    event = LoginEvent.objects.filter(pk=reference).first()
    if event is not None:
        return {"list_notice": _NOT_RECORDED, "hidden_login": event}
    throttled = throttled_with(reference)
    notice: dict[str, Any] = {"list_notice": _NOT_RECORDED, "throttled": throttled}
    if throttled and throttled[0].row.reference == reference:
        one = throttled[0]
        text = gettext("A limit refused this login: {what}.").format(what=one.what)
        return notice | {"missing": text, "callers": caller_texts(lambda: gettext(one.advice))}
    missing = explain_missing(reference, at)
    explanation = gettext(missing.cause.value).format(
        made=missing.made_at and moment_text(missing.made_at),
        oldest=missing.oldest_at and moment_text(missing.oldest_at),
    )
    callers = caller_texts(lambda: gettext(CALLER_TEXTS[missing.cause]))
    return notice | {"missing": explanation, "callers": callers}
