"""Logins: the list, the page of one with its checks, and the simulation (contract 1 and 5)."""

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from identity.staff.display import moment, named
from identity.staff.framework.badges import badge_of_credential
from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import Views
from identity.staff.framework.search import search_by_index
from identity.staff.framework.tasks import Button
from identity.staff.logins import login_search, reasons
from identity.staff.logins.refused.answer import answer_to, records_of
from identity.staff.logins.refused.involved import involved_in
from identity.staff.logins.unrecorded import not_found_context, throttled_for
from identity.staff.logins.what_if import WhatIfForm, what_if
from taxpayers.models import Credential
from tokens import actions
from tokens.explanation import CheckState
from tokens.models import LoginEvent

SIMULATE = gettext_lazy("Simulate a login")


def _client(row: LoginEvent) -> SafeString:
    return named(row.client_id or "—", row.system_user.name if row.system_user else "")


class LoginEventAdmin(ExportingAdmin):
    exported = (
        *(("reference", "pk"), "at", ("outcome", lambda row: row.reason or "issued"), "detail"),
        *("client_id", "subject", "actor", "scope", "kid"),
        *("source_address", "user_agent", "parameter", "since"),
        ("secret", lambda row: f"…{row.secret_hint}" if row.secret_hint else ""),
    )
    export_action = actions.EXPORT_LOGINS
    list_display = (
        column("when", gettext_lazy("when"), lambda row: moment(row.at)),
        column("result", gettext_lazy("result"), lambda row: reasons.badge_of_login(row).html),
        column("client_id", gettext_lazy("client ID as sent"), _client),
        column(
            "taxpayer", gettext_lazy("taxpayer"), lambda row: reasons.taxpayers_of(row, row.names)
        ),
        "source_address",
    )
    list_filter = (
        login_search.RoleFilter,
        login_search.TimeFilter,
        login_search.ResultFilter,
    )
    list_select_related = ("system_user",)
    search_help_text = gettext_lazy("Reference, client ID, TIN, address")
    record_template = "staff/logins/login.html"
    has_history = False

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        names = reasons.names_in(changelist.result_list)
        for row in changelist.result_list:
            row.names = names
        return changelist

    def found(self, request: HttpRequest, rows: "QuerySet[Any]", term: str) -> "QuerySet[Any]":
        return search_by_index(rows, self._conditions(request, term), only_newest=True)

    def exported_rows(self, request: HttpRequest) -> "QuerySet[Any]":
        changelist = self.get_changelist_instance(request)
        conditions = self._conditions(request, changelist.query)
        changelist.query = ""
        used = Credential.objects.filter(pk=OuterRef("secret_id"))
        hint = Subquery(used.values("hint"))
        rows: QuerySet[Any] = changelist.get_queryset(request).annotate(secret_hint=hint)
        return login_search.all_found(rows, conditions) if conditions else rows

    def _conditions(self, request: HttpRequest, search_term: str) -> list[Q]:
        term = " ".join(search_term.split())
        return login_search.search_conditions(term, request.GET.get("role")) if term else []

    def list_context(self, request: HttpRequest, changelist: Any) -> Context:
        term = changelist.query
        if throttled := throttled_for(term):
            return {"list_notice": "staff/logins/throttled_notice.html", "throttled": throttled}
        return {} if changelist.result_count else not_found_context(term, timezone.now())

    def record_context(self, request: HttpRequest, record: LoginEvent, at: datetime) -> Context:
        involved = involved_in(record)
        checks = reasons.checks_of(record, involved.secret)
        secret, user = involved.secret, involved.system_user
        represented = record.subject if record.actor else ""
        asked = {"client_id": user.client_id, "on_behalf_of": represented} if user else {}
        return {
            "state": reasons.badge_of_login(record),
            "words": reasons.staff_text_of(record.reason, reasons.kind_of_login(record, secret)),
            "checks": checks,
            "failed": next((c for c in checks if c.result.state is CheckState.FAILED), None),
            "answer": None if record.is_issued else answer_to(request, involved, at),
            "records": records_of(involved, at),
            "secret": (secret, badge_of_credential(secret, at)) if secret else None,
            "what_if_url": reverse("admin:tokens_loginevent_what_if", query=asked) if user else "",
        }

    def list_buttons(self, request: HttpRequest) -> list[Button]:
        url = reverse("admin:tokens_loginevent_what_if")
        return [Button(SIMULATE, url), *super().list_buttons(request)]

    def views(self) -> Views:
        yield "what_if", "what_would_happen/", self.what_if_view
        yield from super().views()

    def what_if_view(self, request: HttpRequest) -> HttpResponse:
        """What would happen if a client logged in; nothing is recorded."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = WhatIfForm(request.GET or None)
        context = self.page_context(request, None, timezone.now(), breadcrumb=SIMULATE)
        if form.is_valid():
            kind = form.cleaned_data["client_id"].credential_kind
            context |= {"is_asked": True, "asked_kind": kind, "answer": what_if(form.cleaned_data)}
        return TemplateResponse(request, "staff/logins/what_if.html", context | {"form": form})
