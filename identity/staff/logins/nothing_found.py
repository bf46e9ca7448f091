"""What a list without the login of a reference says: filters hide it, or it was never recorded."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from identity.staff.display import moment_text
from identity.staff.logins.reasons import caller_texts
from identity.staff.logins.throttled import throttled_with
from tokens.login_events.reference import CALLER_TEXTS, explain_missing, reference_in
from tokens.models import LoginEvent

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
