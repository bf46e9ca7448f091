"""Signing keys: the list, the page of one, and the task that rotates the key (contract 2)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Unpack
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.display import moment
from identity.staff.framework.badges import Badge
from identity.staff.framework.forms import ReasonField, TaskForm
from identity.staff.framework.lists import Context, column, state_column
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Button, Call, Data, Task
from identity.staff.history.changes import recent_changes
from taxpayers.moments import format_moment
from tokens.keys.ring import ALGORITHMS, Key, KeyRing
from tokens.keys.store import (
    ROTATE_SIGNING_KEY,
    STOP_COMPROMISED_KEY,
    read_key_ring,
    rotate,
    signs_at_once,
    stop_compromised_key,
)
from tokens.models import SigningKey

SIGNING = gettext_lazy("Signing")
NOT_YET_SIGNING = gettext_lazy("Published, not yet signing")
NO_LONGER_SIGNING = gettext_lazy("Published, no longer signing")
NOT_PUBLISHED = gettext_lazy("No longer published")
COMPROMISED = gettext_lazy("Stopped: compromised")


def published_keys() -> Iterable[tuple[str, Any]]:
    """The keys that can be stopped, the newest first, and before them the choice of none."""
    at = timezone.now()
    yield "", gettext_lazy("None: rotate as usual")
    for key in reversed(read_key_ring(at).published(at)):
        yield key.kid, f"{key.kid} ({key.alg})"


class RotateForm(TaskForm):
    alg = forms.ChoiceField(
        label=gettext_lazy("Algorithm"),
        choices=[(name, name) for name in ALGORITHMS],
        widget=UnfoldAdminSelectWidget,
    )
    compromised = forms.ChoiceField(
        label=gettext_lazy("Compromised key"),
        choices=published_keys,
        required=False,
        help_text=gettext_lazy(STOP_COMPROMISED_KEY.effect),
        widget=UnfoldAdminSelectWidget,
    )
    reason = ReasonField(required=False)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("compromised") and not data.get("reason"):
            self.add_error("reason", _("Give the reason why this key is compromised."))
        return data


class RotateSigningKey(Task):
    operation = ROTATE_SIGNING_KEY
    app_label = "tokens"
    button_label = gettext_lazy("Rotate")
    icon = "autorenew"
    variant = "primary"
    form = RotateForm
    is_for_record = False

    def initial(self, request: HttpRequest, record: None, at: datetime) -> dict[str, Any]:
        return {"alg": settings.SIGNING_ALGORITHM} | super().initial(request, record, at)

    def perform(self, record: None, data: Data, **call: Unpack[Call]) -> Key:
        alg, kid, reason = data["alg"], data["compromised"], data["reason"]
        if kid:
            return stop_compromised_key(kid=kid, alg=alg, reason=reason, **call)
        return rotate(alg=alg, reason=reason, **call)

    def success_message(self, result: Key) -> str:
        if signs_at_once(result, timezone.now()):
            return _("The key {kid} is published and signs at once.").format(kid=result.kid)
        return _("The key {kid} is published and signs from {moment}.").format(
            kid=result.kid, moment=format_moment(result.signs_from)
        )

    def next_record(self, result: Key) -> SigningKey:
        return SigningKey.objects.get(kid=result.kid)


def badge_of_signing_key(row: SigningKey, ring: KeyRing, at: datetime) -> Badge:
    """What the key does at this moment."""
    if row.compromised_at is not None:
        stopped = format_html(_("Stopped {moment}."), moment=moment(row.compromised_at))
        return Badge(COMPROMISED, "bad", stopped)
    published = {key.kid for key in ring.published(at)}
    if row.kid not in published:
        return Badge(NOT_PUBLISHED, "neutral")
    if row.kid == ring.signer(at).kid:
        return Badge(SIGNING, "good")
    waiting = ring.waiting(at)
    return (
        Badge(NOT_YET_SIGNING, "warning")
        if waiting is not None and row.kid == waiting.kid
        else Badge(NO_LONGER_SIGNING, "neutral")
    )


class SigningKeyAdmin(RecordAdmin):
    list_display = (
        "kid",
        "alg",
        state_column(lambda row, at: badge_of_signing_key(row, read_key_ring(at), at)),
        column("published", gettext_lazy("published"), lambda row: moment(row.created_at)),
        column("signs", gettext_lazy("signs from"), lambda row: moment(row.signs_from)),
    )
    ordering = ("-generation",)
    record_template = "staff/logins/signing_key.html"
    tasks: ClassVar = (RotateSigningKey,)

    def buttons(self, request: HttpRequest, record: SigningKey, at: datetime) -> list[Button]:
        buttons, task = super().buttons(request, record, at), RotateSigningKey(self)
        published = {key.kid for key in read_key_ring(at).published(at)}
        if record.kid not in published or not task.is_allowed(request):
            return buttons
        title = gettext_lazy(STOP_COMPROMISED_KEY.title)
        url = f"{task.url()}?{urlencode({'compromised': record.kid})}"
        return [*buttons, Button(title, url, "block", "danger")]

    def record_context(self, request: HttpRequest, record: SigningKey, at: datetime) -> Context:
        return {
            "state": badge_of_signing_key(record, read_key_ring(at), at),
            "changes": recent_changes(request, record),
        }
