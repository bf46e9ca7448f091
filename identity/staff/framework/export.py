"""Export of a list, with its search and filters, as CSV or XLSX.

CSV is streamed row by row. Every export is recorded in the history, because data leaves the system:
before the first byte who exports what, and after the last one how many rows, and the SHA-256.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, tzinfo
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import chain, count, islice
from operator import attrgetter
from typing import Any, ClassVar, cast

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.actions import permission_to
from identity.staff.framework.filters import chips_of
from identity.staff.framework.lists import is_too_general
from identity.staff.framework.records import RecordAdmin, Views
from identity.staff.framework.tasks import Button, author
from taxpayers.actions import EXPORT_REGISTRY, Action
from taxpayers.files.csv_reader import escape_formula
from taxpayers.files.spreadsheets import MAX_ROWS_WRITTEN, write_workbook
from taxpayers.keyset import batches_of
from taxpayers.services.history import ChangeContext, record_change, record_export

_CHUNK = 2_000
_FORMATS = {"csv": gettext_lazy("Export CSV"), "xlsx": gettext_lazy("Export XLSX")}
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

# The name of a field; or a name, and what is exported under it: a path of fields, or a function.
Column = str | tuple[str, str | Callable[[Any], Any]]


def table_of(records: Iterable[Any], columns: Iterable[Column]) -> Iterator[list[str]]:
    """The names of the columns, then a row for each record."""
    named = [(one, one) if isinstance(one, str) else one for one in columns]
    values = [attrgetter(value) if isinstance(value, str) else value for _name, value in named]
    zone = timezone.get_current_timezone()
    yield [name for name, _value in named]
    for record in records:
        yield [escape_formula(_text(value(record), zone)) for value in values]


def _as_values(records: "QuerySet[Any]", columns: Iterable[Column]) -> "QuerySet[Any]":
    """The records; only what is exported of them, if that is fields: half of the time."""
    fields = {one.name for one in records.model._meta.fields if not one.is_relation}
    paths = {one if isinstance(one, str) else one[1] for one in columns}
    if not paths <= fields:
        return records
    read = fields & paths | {str(name).removeprefix("-") for name in records.query.order_by}
    return records.prefetch_related(None).values_list(*sorted(read), named=True)


class ExportingAdmin(RecordAdmin):
    exported: ClassVar[tuple[Column, ...]]
    export_action: ClassVar[Action] = EXPORT_REGISTRY

    def may_export(self, request: HttpRequest) -> bool:
        may = request.user.has_perm(permission_to(self.export_action))
        return may and self.has_view_permission(request)

    def list_buttons(self, request: HttpRequest) -> list[Button]:
        buttons = super().list_buttons(request)
        if self.may_export(request):
            buttons += self.export_buttons(request.GET.urlencode())
        return buttons

    def export_buttons(self, query: str) -> list[Button]:
        """The export in each format; `query` chooses the rows."""
        suffix = f"?{query}" if query else ""
        return [
            Button(title, reverse(f"admin:{self.url_name(f'export_{name}')}") + suffix)
            for name, title in _FORMATS.items()
        ]

    def exported_rows(self, request: HttpRequest) -> "QuerySet[Any]":
        """The rows of the list, with its search and filters, on all of its pages."""
        return self.get_changelist_instance(request).get_queryset(request)

    @translation.override("en")  # as it is stored
    def filters(self, request: HttpRequest) -> str:
        """What chose the rows, in words; empty for all."""
        chips = chips_of(request, self.get_changelist_instance(request))
        return "; ".join(f"{chip.title}: {chip.value}" for chip in chips)

    def views(self) -> Views:
        for name in _FORMATS:
            yield f"export_{name}", f"export.{name}", partial(self._export, file_format=name)
        yield from super().views()

    def _export(self, request: HttpRequest, file_format: str) -> HttpResponseBase:
        if not self.may_export(request):
            raise PermissionDenied
        at = timezone.now()
        try:
            records = self.exported_rows(request)
        except IncorrectLookupParameters:  # no such filter: as the list itself answers
            return HttpResponseRedirect(self.list_url())
        if is_too_general(request):  # the list says so
            return HttpResponseRedirect(f"{self.list_url()}?{request.GET.urlencode()}")
        if file_format == "xlsx" and records.order_by()[MAX_ROWS_WRITTEN : MAX_ROWS_WRITTEN + 1]:
            text = _(
                "This list has more than {max} rows. Export it as CSV, or filter the list first."
            )
            messages.error(request, text.format(max=f"{MAX_ROWS_WRITTEN:,}"))
            return HttpResponseRedirect(f"{self.list_url()}?{request.GET.urlencode()}")
        context = ChangeContext(self.export_action, author(request).in_one_task(), at)
        record_export(self.model, context, filters=self.filters(request), form=file_format)
        name = f"{self.opts.model_name}-{timezone.localtime(at):%Y-%m-%d-%H%M}.{file_format}"
        counter = count()
        found = chain.from_iterable(batches_of(_as_values(records, self.exported), _CHUNK))
        counted = zip(table_of(found, self.exported), counter, strict=False)
        rows = (row for row, _number in counted)
        response = as_workbook(rows, name) if file_format == "xlsx" else as_csv(rows, name)
        content = cast("Iterable[bytes]", response.streaming_content)
        response.streaming_content = self._recorded(content, counter, context)
        return response

    def _recorded(
        self, content: Iterable[bytes], counter: Iterator[int], context: ChangeContext
    ) -> Iterator[bytes]:
        """The content; when all of it was sent, what it was is recorded."""
        digest = sha256()
        for chunk in content:
            digest.update(chunk)
            yield chunk
        data_rows = next(counter) - 1  # without the names of the columns
        after = {"rows": data_rows, "sha256": digest.hexdigest()}
        record_change(self.model, context, after=after)


def as_csv(rows: Iterator[list[str]], name: str) -> StreamingHttpResponse:
    """The rows as a file to download, written as they are read."""

    def chunks() -> Iterator[str]:
        yield "\ufeff"  # so that a spreadsheet reads it as UTF-8
        while batch := list(islice(rows, _CHUNK)):
            chunk = StringIO()
            csv.writer(chunk).writerows(batch)
            yield chunk.getvalue()

    return StreamingHttpResponse(
        chunks(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": str(content_disposition_header(True, name))},
    )


def as_workbook(rows: Iterator[list[str]], name: str) -> StreamingHttpResponse:
    """The same as XLSX; its sheet has the first word of the name."""
    file = write_workbook(rows, re.split(r"[-.]", name)[0])
    return FileResponse(file, as_attachment=True, filename=name, content_type=_XLSX)


def _text(value: Any, zone: tzinfo) -> str:
    match value:
        case str():  # first, because most are
            return str(value)
        case None:
            return ""
        case bool():
            return "yes" if value else "no"  # as an import reads it, so never translated
        case datetime():
            return value.astimezone(zone).isoformat(timespec="seconds")
        case _:
            return str(value)
