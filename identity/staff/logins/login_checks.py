"""What was known at each check of a login, and what of it is so today."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from identity.staff.framework.badges import Badge, badge_of_secret, badge_of_system_user
from taxpayers.models import ClientSecret, SystemUser
from taxpayers.rules import Reason
from tokens.explanation import CheckState, Step, explain
from tokens.models import LoginEvent

ICONS = {
    CheckState.PASSED: "check_circle",
    CheckState.FAILED: "cancel",
    CheckState.NOT_REACHED: "radio_button_unchecked",
    CheckState.NOT_ASKED: "remove",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One check as the page shows it: how it ended, and the facts that it looked at."""

    step: Step
    fact: str = ""

    @property
    def icon(self) -> str:
        return ICONS[self.step.state]

    @property
    def kind(self) -> str:
        """The state as the name of a style."""
        return self.step.state.name.lower()


@dataclass(frozen=True, slots=True)
class Today:
    """The client of the login as it is now."""

    system_user: SystemUser
    state: Badge
    secret: ClientSecret | None
    secret_state: Badge | None
    what_if_url: str


def checks_of(event: LoginEvent, secret: ClientSecret | None) -> list[Check]:
    """Every check in order, with what the event says about it."""
    facts = _facts(event, secret)
    return [
        Check(step, "" if step.state is CheckState.NOT_REACHED else facts.get(step.reasons[0], ""))
        for step in explain(event).steps
    ]


def secret_of(event: LoginEvent) -> ClientSecret | None:
    """The secret that was used, if one matched."""
    return ClientSecret.objects.filter(pk=event.secret_id).first() if event.secret_id else None


def today(event: LoginEvent, secret: ClientSecret | None, at: datetime) -> Today | None:
    """The client as it is now; None if the client id was never one of ours."""
    key = event.system_user_id
    user = SystemUser.objects.filter(pk=key).first() if key is not None else None
    if user is None:
        return None
    asked = {"client_id": user.client_id, "on_behalf_of": event.subject if event.actor else ""}
    return Today(
        system_user=user,
        state=badge_of_system_user(user, at),
        secret=secret,
        secret_state=badge_of_secret(secret, at) if secret else None,
        what_if_url=f"{reverse('admin:tokens_loginevent_what_if')}?{urlencode(asked)}",
    )


def _facts(event: LoginEvent, secret: ClientSecret | None) -> dict[Any, str]:
    own = event.actor or event.subject
    pair = f"{event.subject} → {event.actor}" if event.actor else ""
    used = _("client ID {client_id}").format(client_id=event.client_id) if event.client_id else ""
    return {
        Reason.MALFORMED_ON_BEHALF_OF: f"onbehalfof: {event.subject}" if event.actor else "",
        Reason.MALFORMED_CREDENTIALS: used,
        Reason.INVALID_CREDENTIALS: _("secret {secret}").format(secret=secret) if secret else "",
        Reason.TAXPAYER_INACTIVE: own,
        Reason.NOT_AN_INTERMEDIARY: event.actor,
        Reason.NO_PERMISSION: pair,
        Reason.PERMISSION_NOT_YET_VALID: pair,
        Reason.INVALID_SCOPE: event.scope,
    }
