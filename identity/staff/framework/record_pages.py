"""What every page about records has, a task's too: the record, its addresses, the frame."""

from datetime import datetime
from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from identity.staff.framework.lists import ViewOnlyList
from identity.staff.framework.not_found import RecordNotFound
from identity.staff.templatetags.staff import record_url

Text = str | Promise


class RecordPages(ViewOnlyList):
    """One kind of record: where its pages are and what they have in common."""

    def record_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """The record. Raises RecordNotFound, or PermissionDenied if this person may not see it."""
        record = self.get_object(request, unquote(object_id))
        if record is None:
            raise RecordNotFound(_("There is no such record."))
        if not self.has_view_permission(request, record):
            raise PermissionDenied
        return record

    def list_title(self) -> Any:
        """What the list is called."""
        return self.opts.verbose_name_plural

    def record_title(self, record: Any) -> str:
        """What the record is called where there is little room."""
        return str(record)

    def list_url(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")

    def record_url(self, record: Any) -> str:
        return record_url(record) if record is not None else self.list_url()

    def page_context(
        self, request: HttpRequest, record: Any, at: datetime, crumb: Text = ""
    ) -> dict[str, Any]:
        """What every page has: the frame, the way that led to it, and the moment it shows."""
        request.current_app = self.admin_site.name
        crumbs: list[tuple[Any, str]] = [(self.list_title(), self.list_url())]
        if record is not None:
            crumbs.append((self.record_title(record), self.record_url(record)))
        if crumb:
            crumbs.append((crumb, ""))
        return {
            **self.admin_site.each_context(request),
            "crumbs": crumbs,
            "title": crumb or str(record),
            "record": record,
            "at": at,
        }
