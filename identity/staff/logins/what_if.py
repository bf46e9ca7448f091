"""What would happen if a client logged in? The decision of `taxpayers.rules`, without a login."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework import fields
from identity.staff.framework.badges import badge_of_credential, badge_of_system_user
from identity.staff.framework.lists import Context
from identity.staff.logins.reasons import ShownCheck, staff_text_of
from taxpayers import rules
from taxpayers.facts.query import load_facts
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.token_binding import Confirmation
from taxpayers.facts.values import Facts, FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import SystemUser
from tokens.explanation import results_of
from tokens.refusals.table import REFUSALS, Check


class WhatIfForm(forms.Form):
    client_id = fields.CodeField(label=gettext_lazy("Client ID"))
    on_behalf_of = fields.CodeField(
        label=gettext_lazy("On behalf of"),
        required=False,
        help_text=gettext_lazy("TIN, or TIN:ROB. Empty: for its own taxpayer."),
    )
    moment = forms.DateTimeField(
        label=gettext_lazy("When"),
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        help_text=gettext_lazy("Empty: now. Judged by the registry as it is now."),
        widget=fields.browser_calendar(forms.DateTimeInput, "datetime-local", "%Y-%m-%dT%H:%M"),
    )

    def clean_client_id(self) -> SystemUser:
        return fields.find_system_user(self.cleaned_data["client_id"])

    def clean_on_behalf_of(self) -> TaxpayerId | None:
        text = self.cleaned_data["on_behalf_of"]
        return fields.parsed_identifier(text) if text else None

    def clean_moment(self) -> datetime:
        chosen: datetime | None = self.cleaned_data["moment"]
        try:
            return (chosen or timezone.now()).astimezone(UTC)
        except OverflowError:  # the calendar's first and last hours, seen from the other side
            raise ValidationError(self.fields["moment"].error_messages["invalid"]) from None


def what_if(asked: dict[str, Any]) -> Context | None:
    """The decision for what the form asks; None if the client has no secret at all."""
    user, on_behalf_of, at = asked["client_id"], asked["on_behalf_of"], asked["moment"]
    # The secret, or key, that lives longest: the one that its ERP has, or should have by then.
    longest = F("revoked_at").desc(nulls_first=True), "-expires_at"
    secret = user.usable_credentials.order_by(*longest).first()
    if secret is None:
        return None
    facts = load_facts(FactsQuery(user.client_id, secret.lookup, on_behalf_of)).facts
    assert facts is not None  # noqa: S101 - the secret is this client's
    authorization, refused = decide_at(facts, at)
    return {
        "system_user": user,
        "user_state": badge_of_system_user(user, at),
        "secret": secret,
        "secret_state": badge_of_credential(secret, at),
        "at": at,
        "authorization": authorization,
        "words": staff_text_of(refused.reason, secret.kind) if refused else None,
        "checks": [
            ShownCheck(result)
            for result in results_of(
                refused,
                is_on_behalf=on_behalf_of is not None,
                kind=secret.kind,
                checks=_CHECKS,
                unchecked=_NEEDS_A_REQUEST,
                translate=_,
            )
        ],
    }


# Without a request it is unknown how often it comes, from where, and what it proves.
_NEEDS_A_REQUEST = frozenset({Check.SOURCE_NETWORK, Check.RATE_LIMIT, Check.TOKEN_BINDING})
_CHECKS = _NEEDS_A_REQUEST.union(
    check for reason in rules.RegistryReason if (check := REFUSALS[reason].check)
)


def decide_at(
    facts: Facts,
    at: datetime,
    source: LoginSource | None = None,  # None: unknown
    proved: Confirmation | None = None,  # None: all that its tokens must be bound to
) -> tuple[rules.Authorization | None, rules.Refused | None]:
    """The decision about a login that asks for no scope, at the moment `at`: one of the two."""
    request = rules.AuthorizationRequest(
        facts,
        asked_scopes=None,
        known_scopes=tuple(settings.SCOPES),
        at=at,
        confirmation=proved or rules.required_confirmation(facts),
        source=source,
    )
    try:
        return rules.decide(request), None
    except rules.Refused as refused:
        return None, refused
