"""A search of the logins by the name of a taxpayer: logins have identifiers, no names."""

from typing import Any

from django.db.models import Q

from taxpayers.models import Taxpayer

_NOTICE = "staff/logins/named_taxpayers.html"
MAX_SHOWN = 10


def name_conditions(term: str) -> list[Q]:
    """Logins for and by the taxpayer with such a name; none if there are several, or none."""
    taxpayers = _named(term)[:2]
    if len(taxpayers) != 1:
        return []
    identifier = str(taxpayers[0].identifier)
    return [Q(subject=identifier), Q(actor=identifier)]


def named_context(term: str) -> dict[str, Any]:
    """What a list without a login shows: the taxpayers with such a name, if there are any."""
    taxpayers = _named(term)[: MAX_SHOWN + 1]
    if not taxpayers:
        return {}
    has_more = len(taxpayers) > MAX_SHOWN
    return {"list_notice": _NOTICE, "named": taxpayers[:MAX_SHOWN], "has_more_named": has_more}


def _named(term: str) -> list[Taxpayer]:
    return list(Taxpayer.objects.filter(name__has_words=term)[: MAX_SHOWN + 1])
