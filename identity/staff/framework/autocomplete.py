"""Suggestions while a user types a TIN or a name: a few, found by index like any search."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse

from identity.staff.framework.export import ExportingAdmin
from identity.staff.framework.records import Views
from taxpayers.models import Intermediary, Taxpayer

MIN_TERM_LENGTH, MAX_TERM_LENGTH, MAX_SUGGESTIONS = 3, 255, 10


class AutocompleteAdmin(ExportingAdmin):
    """A list of taxpayers or of intermediaries that suggests taxpayers."""

    def suggested_taxpayer(self, row: Taxpayer | Intermediary) -> Taxpayer:
        return row.taxpayer if isinstance(row, Intermediary) else row

    def suggest_view(self, request: HttpRequest) -> JsonResponse:
        """The first taxpayers that match the term `q`; only for people who may see the list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        term = request.GET.get("q", "").strip()
        # A NUL is in no identifier and no name, and PostgreSQL refuses to look for one.
        if not MIN_TERM_LENGTH <= len(term) <= MAX_TERM_LENGTH or "\0" in term:
            return JsonResponse({"suggestions": []})
        rows, _may_repeat = self.get_search_results(request, self.get_queryset(request), term)
        taxpayers = [self.suggested_taxpayer(row) for row in rows[:MAX_SUGGESTIONS]]
        return JsonResponse(
            {"suggestions": [{"value": str(t.identifier), "label": t.name} for t in taxpayers]}
        )

    def views(self) -> Views:
        yield "suggest", "suggest/", self.suggest_view
        yield from super().views()
