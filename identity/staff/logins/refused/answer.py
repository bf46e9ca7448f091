"""The answer about a refused login: what to tell the caller, what cures it, what changed since."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext

from identity.staff.framework.badges import Badge
from identity.staff.framework.changes import action_of
from identity.staff.framework.lists import Context
from identity.staff.framework.records import pages_of
from identity.staff.logins import reasons
from identity.staff.logins.refused.cures import OfferedCures, offered_cures
from identity.staff.logins.refused.involved import Involved, known_client, latest_logins, subject_of
from identity.staff.logins.what_if import decide_at
from taxpayers.actions import marked
from taxpayers.facts.query import load_facts
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.token_binding import UNBOUND
from taxpayers.facts.values import FactsQuery
from taxpayers.models import Change
from taxpayers.rules import Refused, RegistryReason
from tokens.answers.description import describe
from tokens.explanation import refusal_of
from tokens.refusals.table import REFUSALS

MAX_CHANGES = 3
# The same secret stays refused, and the scope that was asked for is not stored: for these, as for a
# fault of the request, it is unknown how the same login would end.
_DECIDABLE = set(RegistryReason) - {
    RegistryReason.SECRET_EXPIRED,
    RegistryReason.SECRET_REVOKED,
    RegistryReason.INVALID_SCOPE,
}
_CURED = marked("What stopped this login is corrected. Your ERP system can log in again now.")
_PROVED_NOTHING = (RegistryReason.DPOP_PROOF_MISSING, RegistryReason.CERTIFICATE_MISSING)


def _decided_now(involved: Involved, at: datetime) -> tuple[bool, Refused | None]:
    """Whether the registry decides how the same login would end now; and why it would refuse it."""
    event, user, secret = involved.event, involved.system_user, involved.secret
    if event.reason not in _DECIDABLE or user is None or secret is None:
        return False, None
    on_behalf_of = subject_of(event) if event.is_on_behalf else None
    facts = load_facts(FactsQuery(user.client_id, secret.lookup, on_behalf_of)).facts
    if facts is None:
        return False, None
    proved = UNBOUND if event.reason in _PROVED_NOTHING else None
    _authorization, refused = decide_at(facts, at, LoginSource(event.source_address), proved)
    return True, refused


def changes_since(request: HttpRequest, involved: Involved) -> list[tuple[Any, Change]]:
    """The latest changes of these records since the login; none if this person may not see them."""
    if not request.user.has_perm("taxpayers.view_change"):
        return []
    of_one = Q()
    for record in involved.records:
        if record is not None:
            of_one |= Q(object_type=record._meta.model_name, object_id=str(record.pk))
    if not of_one:
        return []
    changes = Change.objects.filter(of_one, at__gt=involved.event.at)[:MAX_CHANGES]
    return [(action_of(change), change) for change in changes]


def answer_to(request: HttpRequest, involved: Involved, at: datetime) -> Context:
    """What the page of a refused login says, for this reader, before the request and its checks."""
    event = involved.event
    refused = refusal_of(event)
    assert refused is not None  # noqa: S101 - the caller has a refused login
    latest = latest_logins(event.client_id)
    is_decided, now = _decided_now(involved, at)
    is_cured = is_decided and now is None
    reason = now.reason if now else event.reason
    words = reasons.staff_text_of(reason, reasons.kind_of_login(event, involved.secret))
    return {
        # What to say to the caller; and what its ERP system got, if not the same.
        "callers": reasons.caller_texts(
            (lambda: gettext(_CURED))
            if is_cured
            else lambda: describe(refused, gettext, is_spoken=True)
        ),
        "received": describe(refused) if is_cured or REFUSALS[refused.reason].spoken else "",
        "is_cured": is_cured,  # the same login would get a token now
        # The latest since, of the same client for the same taxpayer, perhaps to another system.
        "token": latest.token_since(event),
        # Why it would be refused now; and whether that is the same reason as then.
        "now": words if now else None,
        "is_same": reason == event.reason,
        "changes": changes_since(request, involved),
        "cures": OfferedCures() if is_cured else offered_cures(request, reason, involved, at),
        "client": known_client(involved, latest, at),
    }


def records_of(involved: Involved, at: datetime) -> list[tuple[str, Any, Badge]]:
    """The records of the login with their state now: title, record, state."""
    titles = (
        *(gettext("System user"), gettext("Taxpayer"), gettext("Intermediary")),
        *(gettext("Represented taxpayer"), gettext("Newest permission")),
    )
    return [
        (title, record, pages_of(type(record)).badge(record, at))
        for title, record in zip(titles, involved.records, strict=True)
        if record is not None
    ]
