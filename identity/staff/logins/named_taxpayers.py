"""A search of the logins by the name of a taxpayer: logins have identifiers, no names."""

from typing import Any

from django.db.models import Q, QuerySet

from identity.staff.framework.search import TooGeneral, limited_search
from taxpayers.models import Taxpayer

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
