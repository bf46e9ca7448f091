"""Logins: find one, and see why it ended as it did (contract 1 and 5)."""

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
from identity.staff.logins.filters import DayFilter, OutcomeFilter, PeriodFilter
from identity.staff.logins.login_checks import checks_of, secret_of, today
from identity.staff.logins.reasons import badge_of_login, staff_text_of
from identity.staff.logins.what_if import WhatIfForm, what_if
from identity.staff.templatetags.staff import moment
from tokens.login_events.reference import reference_in
from tokens.models import LoginEvent

WHAT_WOULD_HAPPEN = gettext_lazy("What would happen?")


class LoginEventAdmin(ExportingAdmin):
    export = exports.LOGINS
    list_display = ("when", "outcome", "client_id", "for_whom", "source_address")
    list_display_links = ("when",)
    list_filter = (PeriodFilter, DayFilter, OutcomeFilter)
    ordering = ("-pk",)
    search_fields = ("client_id",)
    search_help_text = gettext_lazy("Reference, client ID, TIN or source address")
    record_template = "staff/logins/login.html"

    def ways_to_find(self, term: str) -> Iterable[Q]:
        """By what the term looks like; each is the beginning of an index."""
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
        # One way is enough, and its index is in the order of the list: no need to collect keys.
        term = " ".join(search_term.split())
        ways = list(self.ways_to_find(term)) if term else []
        for way in ways[:-1]:
            if queryset.filter(way).order_by("-pk")[:1]:
                return queryset.filter(way), False
        return (queryset.filter(ways[-1]) if ways else queryset), False

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
        return [Button(WHAT_WOULD_HAPPEN, url, "help"), *super().list_buttons(request)]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.what_if_view)
        return [
            path("what_would_happen/", view, name="tokens_loginevent_what_if"),
            *super().get_urls(),
        ]

    def what_if_view(self, request: HttpRequest) -> HttpResponse:
        """The decision about a login that nobody made."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = WhatIfForm(request.GET or None)
        context = self.page_context(request, None, timezone.now(), crumb=WHAT_WOULD_HAPPEN)
        if form.is_valid():
            context |= {"is_asked": True, "answer": what_if(form.cleaned_data)}
        return TemplateResponse(request, "staff/logins/what_if.html", context | {"form": form})

    @admin.display(description=gettext_lazy("when"))
    def when(self, row: LoginEvent) -> str:
        return moment(row.at)

    @admin.display(description=gettext_lazy("outcome"))
    def outcome(self, row: LoginEvent) -> str:
        return badge_of_login(row).badge

    @admin.display(description=gettext_lazy("for"))
    def for_whom(self, row: LoginEvent) -> str:
        return f"{row.subject} ({row.actor})" if row.actor else row.subject or "—"


def _address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None
