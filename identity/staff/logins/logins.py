"""Logins: the list, the page of one with its checks, and the simulation (contract 1 and 5)."""

from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.tasks import Button
from identity.staff.logins import exports
from identity.staff.logins.filters import DayFilter, LoginPeriodFilter, ResultFilter
from identity.staff.logins.login_checks import checks_of, secret_of, today
from identity.staff.logins.reasons import badge_of_login, staff_text_of
from identity.staff.logins.what_if import WhatIfForm, what_if
from identity.staff.templatetags.staff import moment
from tokens.login_events.reference import reference_in
from tokens.models import LoginEvent

SIMULATE = gettext_lazy("Simulate a login")


class LoginEventAdmin(ExportingAdmin):
    export = exports.LOGINS
    list_display = ("when", "result", "client_id", "taxpayer", "source_address")
    list_display_links = ("when",)
    list_filter = (LoginPeriodFilter, DayFilter, ResultFilter)
    ordering = ("-pk",)
    search_fields = ("client_id",)
    search_help_text = gettext_lazy("Reference, client ID, TIN or source address")
    record_template = "staff/logins/login.html"

    def search_conditions(self, term: str) -> Iterable[Q]:
        """Depends on the form of the term; each condition is the beginning of an index."""
        reference = reference_in(term)
        if reference is not None:
            return [Q(pk=reference)]
        address = _address(term)
        if address is not None:
            return [Q(source_address=address)]
        return [Q(client_id=term), Q(subject=term.upper())]

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        # The first condition with a match is enough. Its index has the order of the list, so
        # no ids need to be collected first.
        term = " ".join(search_term.split())
        conditions = list(self.search_conditions(term)) if term else []
        for condition in conditions[:-1]:
            if queryset.filter(condition).order_by("-pk")[:1]:
                return queryset.filter(condition), False
        return (queryset.filter(conditions[-1]) if conditions else queryset), False

    def record_context(
        self, request: HttpRequest, record: LoginEvent, at: datetime
    ) -> dict[str, Any]:
        secret = secret_of(record)
        return {
            "state": badge_of_login(record),
            "words": staff_text_of(record.reason),
            "checks": checks_of(record, secret),
            "today": today(record, secret, at),
        }

    def list_buttons(self, request: HttpRequest) -> list[Button]:
        url = reverse("admin:tokens_loginevent_what_if")
        return [Button(SIMULATE, url, "help"), *super().list_buttons(request)]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.what_if_view)
        return [
            path("what_would_happen/", view, name="tokens_loginevent_what_if"),
            *super().get_urls(),
        ]

    def what_if_view(self, request: HttpRequest) -> HttpResponse:
        """What would happen if a client logged in; nothing is recorded."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = WhatIfForm(request.GET or None)
        context = self.page_context(request, None, timezone.now(), breadcrumb=SIMULATE)
        if form.is_valid():
            context |= {"is_asked": True, "answer": what_if(form.cleaned_data)}
        return TemplateResponse(request, "staff/logins/what_if.html", context | {"form": form})

    @admin.display(description=gettext_lazy("when"))
    def when(self, row: LoginEvent) -> str:
        return moment(row.at)

    @admin.display(description=gettext_lazy("result"))
    def result(self, row: LoginEvent) -> str:
        return badge_of_login(row).html

    @admin.display(description=gettext_lazy("taxpayer"))
    def taxpayer(self, row: LoginEvent) -> str:
        return f"{row.subject} ({row.actor})" if row.actor else row.subject or "—"


def _address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None
