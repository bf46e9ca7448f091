"""Signing keys: which one signs, which are still published, and a new one (contract 2)."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from identity.staff.framework.badges import Badge
from identity.staff.framework.forms import TaskForm
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import Task
from identity.staff.registry.history import recent_changes
from identity.staff.templatetags.staff import moment
from taxpayers.services import Author
from tokens.keys.ring import ALGORITHMS, Key, KeyRing
from tokens.keys.store import read_key_ring, rotate
from tokens.models import SigningKey

SIGNS = gettext_lazy("Signs")
WAITING = gettext_lazy("Published, not yet signing")
PUBLISHED = gettext_lazy("Published, signs no more")
WITHDRAWN = gettext_lazy("Withdrawn")


class RotateForm(TaskForm):
    alg = forms.ChoiceField(
        label=gettext_lazy("Algorithm"),
        choices=[(name, name) for name in ALGORITHMS],
        widget=UnfoldAdminSelectWidget,
    )


class RotateSigningKey(Task):
    name = "rotate_signing_key"
    app_label = "tokens"
    title = gettext_lazy("Rotate the signing key")
    button = gettext_lazy("Rotate")
    says = gettext_lazy(
        "A new key is published now and begins to sign in ten minutes, when everybody knows it."
        " The present one stays published until its last token has expired. Nobody has to do"
        " anything."
    )
    icon = "autorenew"
    variant = "primary"
    form = RotateForm
    is_for_record = False

    def initial(self, request: HttpRequest, record: None, at: datetime) -> dict[str, Any]:
        return {"alg": settings.SIGNING_ALGORITHM}

    def perform(self, record: None, data: dict[str, Any], *, by: Author, at: datetime) -> Key:
        return rotate(alg=data["alg"], by=by, at=at)

    def done(self, result: Key) -> str:
        return _("The key {kid} is published.").format(kid=result.kid)

    def shown_record(self, result: Key) -> SigningKey:
        return SigningKey.objects.get(kid=result.kid)


def state_of(row: SigningKey, ring: KeyRing, at: datetime) -> Badge:
    """What the key does at this moment, read from the published ring."""
    published = {key.kid for key in ring.published(at)}
    if row.kid not in published:
        return Badge(WITHDRAWN, "neutral")
    if row.kid == ring.signer(at).kid:
        return Badge(SIGNS, "good")
    return Badge(WAITING, "warning") if row.signs_from > at else Badge(PUBLISHED, "neutral")


class SigningKeyAdmin(RecordAdmin):
    list_display = ("kid", "alg", "state", "published", "signs")
    list_display_links = ("kid",)
    ordering = ("-generation",)
    record_template = "staff/logins/signing_key.html"
    tasks: ClassVar = (RotateSigningKey,)

    def record_context(
        self, request: HttpRequest, record: SigningKey, at: datetime
    ) -> dict[str, Any]:
        return {
            "state": state_of(record, read_key_ring(at), at),
            "changes": recent_changes(request, record),
        }

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: SigningKey) -> str:
        at = timezone.now()
        return state_of(row, read_key_ring(at), at).badge

    @admin.display(description=gettext_lazy("published"))
    def published(self, row: SigningKey) -> str:
        return moment(row.created_at)

    @admin.display(description=gettext_lazy("signs from"))
    def signs(self, row: SigningKey) -> str:
        return moment(row.signs_from)
