"""What all pages about records share, also those of tasks: the record, URLs, breadcrumbs."""

from datetime import datetime
from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from identity.staff.display import record_url
from identity.staff.framework.lists import ViewOnlyList
from identity.staff.framework.not_found import RecordNotFound

Text = str | Promise


class RecordPages(ViewOnlyList):
    """One kind of record: the URLs of its pages and their common context."""

    def record_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """The record. Raises RecordNotFound, or PermissionDenied if this person may not see it."""
        record = self.get_object(request, unquote(object_id))
        if record is None:
            raise RecordNotFound(_("This record does not exist."))
        if not self.has_view_permission(request, record):
            raise PermissionDenied
        return record

    def list_title(self) -> Any:
        """The title of the list."""
        return self.opts.verbose_name_plural

    def record_title(self, record: Any) -> str:
        """A short title of the record, for the browser's tab and the breadcrumbs."""
        return str(record)

    def list_url(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")

    def record_url(self, record: Any) -> str:
        return record_url(record) if record is not None else self.list_url()

    def page_context(
        self, request: HttpRequest, record: Any, at: datetime, breadcrumb: Text = ""
    ) -> dict[str, Any]:
        """The context of every page: the frame, the breadcrumbs, the record and the moment."""
        request.current_app = self.admin_site.name
        breadcrumbs: list[tuple[Any, str]] = [(self.list_title(), self.list_url())]
        if record is not None:
            breadcrumbs.append((self.record_title(record), self.record_url(record)))
        if breadcrumb:
            breadcrumbs.append((breadcrumb, ""))
        return {
            **self.admin_site.each_context(request),
            "breadcrumbs": breadcrumbs,
            "title": breadcrumb or self.record_title(record),
            "record": record,
            "at": at,
        }
