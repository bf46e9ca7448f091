"""What was known at each check of a login."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from taxpayers.credential_kind import CredentialKind
from taxpayers.models import Credential
from tokens.explanation import CheckResult, CheckState, refusal_of, results_of
from tokens.models import LoginEvent
from tokens.refusals.table import Check, kind_named_by

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


def kind_of_login(event: LoginEvent, secret: Credential | None) -> CredentialKind:
    """What the login was with; where nothing matched, as its refusal says."""
    return secret.kind if secret else kind_named_by(event.parameter)


def checks_of(event: LoginEvent, secret: Credential | None) -> list[ShownCheck]:
    """Every check in order, with what the event says about it."""
    facts = _facts(event, secret)
    results = results_of(
        refusal_of(event),
        is_on_behalf=event.is_on_behalf,
        kind=kind_of_login(event, secret),
        translate=_,
    )
    return [
        ShownCheck(
            result, "" if result.state is CheckState.NOT_REACHED else facts.get(result.check, "")
        )
        for result in results
    ]


def _proof(secret: Credential) -> str:
    if secret.is_key:
        return _("private key {kid} (private_key_jwt)").format(kid=secret.kid)
    if secret.is_certificate:
        return _("certificate with {name} (tls_client_auth)").format(name=secret.certificate_name)
    return _("secret {secret}").format(secret=secret)


def _facts(event: LoginEvent, secret: Credential | None) -> dict[Check, str]:
    own = event.actor or event.subject
    pair = f"{event.subject} → {event.actor}" if event.actor else ""
    used = _("client ID {client_id}").format(client_id=event.client_id) if event.client_id else ""
    return {
        Check.ON_BEHALF_OF: f"onbehalfof: {event.subject}" if event.actor else "",
        Check.CREDENTIALS_FORM: used,
        Check.CREDENTIALS: _proof(secret) if secret else "",
        Check.SOURCE_NETWORK: event.source_address or "",
        Check.TAXPAYER: own,
        Check.INTERMEDIARY: event.actor,
        Check.LIMIT: event.subject,
        Check.PERMISSION: pair,
        Check.PERMISSION_IN_FORCE: pair,
        # Of a refused login: the unknown scope, which the answer does not repeat.
        Check.SCOPE: event.scope or event.detail,
    }
