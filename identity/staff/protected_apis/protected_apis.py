"""Protected APIs: the list and the page of one, with its secrets (contract 2)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment
from identity.staff.framework.badges import (
    ACTIVE,
    NO_VALID_SECRET,
    NOT_ACTIVE,
    Badge,
    badge_of_credential,
    until_badge,
)
from identity.staff.framework.lists import Context, column, state_column
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.tasks import tasks_by_reason
from identity.staff.history.changes import recent_changes
from identity.staff.protected_apis.tasks import (
    RegisterProtectedApi,
    RevokeApiSecret,
    RotateApiSecret,
)
from tokens.models import ProtectedApi
from tokens.protected_apis import registration


def badge_of_api(row: ProtectedApi, at: datetime) -> Badge:
    """What the API would be answered now, and until when; load it with its secrets."""
    if not row.is_active:
        return Badge(NOT_ACTIVE, "bad", _("Everything that it asks is refused."))
    live = [secret for secret in row.credentials.all() if secret.is_live(at)]
    if not live:
        return Badge(NO_VALID_SECRET, "bad", _("It has no valid secret. Issue a new one."))
    last = max(live, key=lambda secret: secret.expires_at)
    badge = until_badge(ACTIVE, last.expires_at, at)
    if not badge.also:
        return badge
    text = _("Its last valid secret, …{secret}, expires {moment}. Issue a new one before.")
    return replace(
        badge, sentence=format_html(text, secret=last.hint, moment=moment(last.expires_at))
    )


class ProtectedApiAdmin(RecordAdmin):
    list_display = (
        *("name", "client_id", "audience"),
        state_column(badge_of_api),
        column("registered", gettext_lazy("registered"), lambda row: moment(row.created_at)),
    )
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    ordering = ("name",)
    search_fields = ("name", "client_id")  # Django shows the search; search_conditions does it
    search_help_text = gettext_lazy("Name or client ID")
    record_template = "staff/protected_apis/protected_api.html"
    tasks: ClassVar = (
        RegisterProtectedApi,
        RotateApiSecret,
        RevokeApiSecret,
        *tasks_by_reason(vars(registration)),
    )

    def search_conditions(self, term: str) -> Iterable[Q]:
        # No index: there are as many as the authority has APIs.
        return [Q(name__icontains=term) | Q(client_id__startswith=term)]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("credentials")

    def record_context(self, request: HttpRequest, record: ProtectedApi, at: datetime) -> Context:
        secrets = sorted(record.credentials.all(), key=lambda secret: -secret.pk)
        return {
            "state": badge_of_api(record, at),
            "secrets": [(secret, badge_of_credential(secret, at)) for secret in secrets],
            "changes": recent_changes(request, record),
        }
