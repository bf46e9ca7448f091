"""Signing keys: the list, the page of one, and the task that rotates the key (contract 2)."""

from datetime import datetime
from typing import Any, ClassVar, Unpack

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.display import moment
from identity.staff.framework import fields
from identity.staff.framework.badges import Badge
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Call, Data, Task, TaskForm
from taxpayers.moments import moment_text
from tokens.keys import store
from tokens.keys.ring import ALGORITHMS, Key
from tokens.lifetime import TOKEN_LIFETIME
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent, SigningKey

_MAX_LOGINS = 10_000  # that are read to count the clients of a key


class RotateForm(TaskForm):
    alg = fields.SelectField(
        label=gettext_lazy("Algorithm"), choices=[(name, name) for name in ALGORITHMS]
    )
    reason = fields.ReasonField(required=False)


class StopForm(RotateForm):
    """Asks for the end of the key's name: another key may be the compromised one."""

    hint = fields.LastCharactersField(label=gettext_lazy("Last six characters of the key ID"))
    reason = fields.ReasonField()
    field_order = ("hint", "reason", "alg")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["alg"].label = gettext_lazy("Algorithm of the new key")
        self.fields["hint"].expected = self.record.kid[-6:]  # type: ignore[attr-defined]  # it has one


class RotateSigningKey(Task):
    operation = store.ROTATE_SIGNING_KEY
    button_label = gettext_lazy("Rotate")
    variant = "primary"
    form = RotateForm

    def initial(self, request: HttpRequest, record: None, at: datetime) -> dict[str, Any]:
        return {"alg": settings.SIGNING_ALGORITHM} | super().initial(request, record, at)

    def perform(self, record: None, data: Data, **call: Unpack[Call]) -> Key:
        return store.rotate(alg=data["alg"], reason=data["reason"], **call)

    def success_message(self, result: Key) -> str:
        if store.signs_at_once(result, timezone.now()):
            return _("The key {kid} is published and signs at once.").format(kid=result.kid)
        text = _("The key {kid} is published and signs from {moment}.")
        return text.format(kid=result.kid, moment=moment_text(result.signs_from))

    def next_record(self, result: Key) -> SigningKey:
        return SigningKey.objects.get(kid=result.kid)


class StopCompromisedKey(Task):
    operation = store.STOP_COMPROMISED_KEY
    is_for_record = True
    form = StopForm
    template = "staff/logins/stop_key.html"

    def initial(self, request: HttpRequest, record: SigningKey, at: datetime) -> dict[str, Any]:
        return {"alg": record.alg}

    def form_context(self, request: HttpRequest, form: TaskForm, at: datetime) -> Context:
        """How many clients got a token with it that has not expired."""
        issued = LoginEvent.objects.filter(pk__gte=first_id(at - TOKEN_LIFETIME), reason="")
        newest = issued.order_by("-pk").values_list("kid", "client_id")[:_MAX_LOGINS]
        return {
            "clients": len({client for kid, client in newest if kid == form.record.kid}),
            "has_more": len(newest) == _MAX_LOGINS,
        }

    def perform(self, record: SigningKey, data: Data, **call: Unpack[Call]) -> SigningKey:
        store.stop_compromised_key(kid=record.kid, alg=data["alg"], reason=data["reason"], **call)
        return record

    def success_message(self, result: SigningKey) -> str:
        signs = store.read_key_ring(timezone.now()).signer(timezone.now()).kid
        text = _("The key {kid} is stopped: no token that it signed is accepted. {new} signs now.")
        return text.format(kid=result.kid, new=signs)


def badge_of_signing_key(row: SigningKey, at: datetime) -> Badge:
    """What the key does at this moment."""
    ring = store.read_key_ring(at)
    if row.compromised_at is not None:
        stopped = format_html(_("Stopped {moment}."), moment=moment(row.compromised_at))
        return Badge(_("Stopped: compromised"), "bad", stopped)
    published = {key.kid for key in ring.published(at)}
    if row.kid not in published:
        return Badge(_("No longer published"), "neutral")
    if row.kid == ring.signer(at).kid:
        return Badge(_("Signing"), "good")
    waiting = ring.waiting(at)
    if waiting is not None and row.kid == waiting.kid:
        return Badge(_("Published, not yet signing"), "warning")
    return Badge(_("Published, no longer signing"), "neutral")


class SigningKeyAdmin(RecordAdmin):
    list_display = (
        "kid",
        "alg",
        "state",
        column("published", gettext_lazy("published"), lambda row: moment(row.created_at)),
        column("signs", gettext_lazy("signs from"), lambda row: moment(row.signs_from)),
    )
    ordering = ("-generation",)
    record_template = "staff/logins/signing_key.html"
    tasks: ClassVar = (RotateSigningKey, StopCompromisedKey)
    badge = staticmethod(badge_of_signing_key)
