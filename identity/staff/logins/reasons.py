"""How logins ended and what was known at each check, in the staff's words (contract 1)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q
from django.utils import translation
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from identity.staff.display import named
from identity.staff.framework.badges import Badge
from taxpayers.credential_kind import CredentialKind
from taxpayers.models import Credential, Taxpayer
from tokens.explanation import CheckResult, CheckState, refusal_of, results_of
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS, Check, kind_named_by

ISSUED = _("Token issued")


class StaffText(NamedTuple):
    """What is wrong, and who can fix it; both translated when they are shown."""

    what: Any
    who: Any


def staff_text_of(reason: str, kind: CredentialKind | None = None) -> StaffText:
    """The text of a recorded reason; an unknown one as it is. No `kind`: the text for all kinds."""
    refusal = REFUSALS.get(reason)
    if refusal is None:
        return StaffText(reason, "")
    return StaffText(_(refusal.staff_text_of(kind)), _(refusal.fixed_by))


def badge_of_login(event: LoginEvent) -> Badge:
    """How the login ended, in a few words."""
    if event.is_issued:
        return Badge(ISSUED, "good")
    return Badge(staff_text_of(event.reason, kind_named_by(event.parameter)).what, "bad")


def taxpayers_of(row: LoginEvent, names: Mapping[str, str]) -> SafeString:
    """For which taxpayer it was, and by which intermediary, with the names of `names_in`."""
    subject = named(row.subject or "—", names.get(row.subject, ""))
    if not row.actor:
        return subject
    actor = named(row.actor, names.get(row.actor, ""))
    return format_html("{} {}", subject, format_html(gettext("by %(who)s") % {"who": "{}"}, actor))


def names_in(rows: Iterable[LoginEvent]) -> dict[str, str]:
    """The names of the taxpayers of these logins, by identifier: one query for all."""
    are_named = Q(pk__in=())
    for identifier in {text for row in rows for text in (row.subject, row.actor) if text}:
        tin, _colon, rob = identifier.partition(":")
        are_named |= Q(tin=tin, rob=rob)
    return {str(row.identifier): row.name for row in Taxpayer.objects.filter(are_named)}


def caller_texts(text: Callable[[], str]) -> list[tuple[str, str, str]]:
    """The code and the name of each language, and what `text` returns while it is active."""
    texts = []
    for language, name in settings.LANGUAGES:
        with translation.override(language):
            texts.append((language, str(name), text()))
    return texts


ICONS = {
    CheckState.PASSED: "check_circle",
    CheckState.FAILED: "cancel",
    CheckState.NOT_REACHED: "radio_button_unchecked",
    CheckState.NOT_ASKED: "remove",
    CheckState.NOT_CHECKED: "help",
}
_ANSWERS = {
    CheckState.PASSED: _("yes"),
    CheckState.FAILED: _("no"),
    CheckState.NOT_ASKED: _("not needed"),  # only of a login on behalf of another taxpayer
}


@dataclass(frozen=True, slots=True)
class ShownCheck:
    result: CheckResult
    fact: str = ""

    @property
    def icon(self) -> str:
        return ICONS[self.result.state]

    @property
    def answer(self) -> Any:
        """Whether the statement of the check is true; or why that is not known."""
        return _ANSWERS.get(self.result.state) or gettext(self.result.state)

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
        translate=gettext,
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
