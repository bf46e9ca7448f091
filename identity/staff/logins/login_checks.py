"""What was known at each check of a login, and what of it is so today."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from identity.staff.framework.badges import Badge, badge_of_secret, badge_of_system_user
from taxpayers.models import ClientSecret, SystemUser
from tokens.explanation import CheckResult, CheckState, explain
from tokens.models import LoginEvent
from tokens.refusals.table import Check

ICONS = {
    CheckState.PASSED: "check_circle",
    CheckState.FAILED: "cancel",
    CheckState.NOT_REACHED: "radio_button_unchecked",
    CheckState.NOT_ASKED: "remove",
}


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """One check as the page shows it: how it ended, and the facts that it looked at."""

    result: CheckResult
    fact: str = ""

    @property
    def icon(self) -> str:
        return ICONS[self.result.state]

    @property
    def kind(self) -> str:
        """The state as the name of a style."""
        return self.result.state.name.lower()


@dataclass(frozen=True, slots=True)
class Today:
    """The client of the login as it is now."""

    system_user: SystemUser
    state: Badge
    secret: ClientSecret | None
    secret_state: Badge | None
    what_if_url: str


def checks_of(event: LoginEvent, secret: ClientSecret | None) -> list[ShownCheck]:
    """Every check in order, with what the event says about it."""
    facts = _facts(event, secret)
    return [
        ShownCheck(
            result, "" if result.state is CheckState.NOT_REACHED else facts.get(result.check, "")
        )
        for result in explain(event).results
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


def _facts(event: LoginEvent, secret: ClientSecret | None) -> dict[Check, str]:
    own = event.actor or event.subject
    pair = f"{event.subject} → {event.actor}" if event.actor else ""
    used = _("client ID {client_id}").format(client_id=event.client_id) if event.client_id else ""
    return {
        Check.ON_BEHALF_OF: f"onbehalfof: {event.subject}" if event.actor else "",
        Check.CREDENTIALS_FORM: used,
        Check.CREDENTIALS: _("secret {secret}").format(secret=secret) if secret else "",
        Check.TAXPAYER: own,
        Check.INTERMEDIARY: event.actor,
        Check.PERMISSION: pair,
        Check.PERMISSION_IN_FORCE: pair,
        # Of a refused login: the unknown scope, which the answer does not repeat.
        Check.SCOPE: event.scope or event.detail,
    }
