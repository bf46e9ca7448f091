"""Why a search for a reference finds no login: filters hide it, or it was never recorded."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from identity.staff.display import moment_text
from identity.staff.logins.refused.caller_text import caller_texts
from tokens.login_events.missing import CALLER_TEXTS, explain_missing
from tokens.login_events.reference import reference_in
from tokens.models import LoginEvent

_NOTICE = "staff/logins/not_recorded.html"


def not_found_context(term: str, at: datetime) -> dict[str, Any]:
    """What a list without a login shows; nothing unless the term has a reference."""
    reference = reference_in(term)
    if reference is None:
        return {}
    event = LoginEvent.objects.filter(pk=reference).first()
    if event is not None:
        return {"list_notice": _NOTICE, "hidden_login": event}
    missing = explain_missing(reference, at)
    explanation = gettext(missing.cause.value).format(
        made=missing.made_at and moment_text(missing.made_at),
        oldest=missing.oldest_at and moment_text(missing.oldest_at),
    )
    callers = caller_texts(lambda: gettext(CALLER_TEXTS[missing.cause]))
    return {"list_notice": _NOTICE, "missing": explanation, "callers": callers}
