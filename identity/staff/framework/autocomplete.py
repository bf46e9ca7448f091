"""Suggestions while somebody types a TIN or a name: a few, and found by index like any search."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse
from django.urls import URLPattern, path

from identity.staff.framework.export import ExportingAdmin
from taxpayers.models import Intermediary, Taxpayer

SHORTEST, MOST = 3, 10


class SuggestingAdmin(ExportingAdmin):
    """A list of taxpayers, or of taxpayers in a role, that suggests."""

    def suggested(self, row: Taxpayer | Intermediary) -> Taxpayer:
        """The taxpayer whose identifier is typed."""
        return row.taxpayer if isinstance(row, Intermediary) else row

    def suggest_view(self, request: HttpRequest) -> JsonResponse:
        """The first few that the term finds, for those who may see them."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        term = request.GET.get("q", "").strip()
        if len(term) < SHORTEST:
            return JsonResponse({"suggestions": []})
        rows, _may_repeat = self.get_search_results(request, self.get_queryset(request), term)
        shown = [self.suggested(row) for row in rows[:MOST]]
        return JsonResponse(
            {"suggestions": [{"value": str(t.identifier), "label": t.name} for t in shown]}
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.suggest_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_suggest"
        return [path("suggest/", view, name=name), *super().get_urls()]
