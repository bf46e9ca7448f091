"""Taxpayers from a file: sent, looked at, then confirmed (contract 6, `import_registry`).

Nothing is registered before somebody has seen what would be. The file waits in the database, so
that another node can go on with it; whoever sent it needs to send it once only.
"""

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.base import File
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminFileFieldWidget

from identity.staff.framework.forms import TaskForm
from identity.staff.framework.not_found import RecordNotFound
from identity.staff.framework.tasks import Task, author
from taxpayers.files.csv_escaping import escape_formula
from taxpayers.files.csv_reader import SPREADSHEET_SIGNATURE, read_cells
from taxpayers.files.spreadsheets import workbook_to_csv
from taxpayers.files.taxpayer_rows import COLUMNS, IGNORED, OPTIONAL, ParsedFile, read_taxpayers
from taxpayers.models import UploadedFile
from taxpayers.services import (
    ImportPreview,
    ImportResult,
    ServiceError,
    import_registry,
    preview_registry,
)
from taxpayers.services.uploads import delete_upload, find_upload, save_upload
from taxpayers.validation import taxpayer_notation

LARGEST_BYTES = 16 << 20
MOST_ROWS = 100_000
MOST_LISTED = 100


class ImportForm(TaskForm):
    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,.xlsx"}),
        help_text=gettext_lazy("CSV (UTF-8) or XLSX, up to 16 MiB and 100,000 rows."),
    )

    def clean_file(self) -> "File[bytes]":
        file: File[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST_BYTES:
            raise forms.ValidationError(_("The file is larger than 16 MiB: split it."))
        return file


class ImportRegistry(Task):
    name = "import_registry"
    title = gettext_lazy("Import taxpayers")
    button = gettext_lazy("Import")
    says = gettext_lazy(
        "The first line names the columns: tin and name, and where wanted rob and active (yes or"
        " no). You see what would be registered before anything is; all rows are, or none."
    )
    icon = "upload_file"
    form = ImportForm
    template = "staff/registry/import.html"
    is_for_record = False

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        if not self.may(request):
            raise PermissionDenied
        at = timezone.now()
        if "upload" in request.GET:
            return self._uploaded(request, self._upload_or_404(request, at), at)
        form = ImportForm(data=request.POST or None, files=request.FILES or None)
        if request.method == "POST" and form.is_valid():
            try:
                upload = self._keep(request, form.cleaned_data["file"], at)
            except ServiceError as fault:
                form.add_error("file", str(fault))
            else:
                return HttpResponseRedirect(f"{self.url()}?upload={upload.pk}")
        return self.page(request, None, form, at)

    # --- The file was sent ------------------------------------------------------------------

    def _keep(self, request: HttpRequest, file: "File[bytes]", at: datetime) -> UploadedFile:
        content = file.read()
        if content.startswith(SPREADSHEET_SIGNATURE):
            content = workbook_to_csv(io.BytesIO(content))
        _read(content)  # a file that is no table is refused before it is kept
        name = file.name or "file"
        return save_upload(name=name, content=content, by=author(request), at=at)

    def _upload_or_404(self, request: HttpRequest, at: datetime) -> UploadedFile:
        key = request.GET["upload"]
        upload = find_upload(key=int(key), by=author(request), at=at) if key.isdecimal() else None
        if upload is None:
            raise RecordNotFound(_("This file does not wait any more. Send it again."))
        return upload

    # --- It is looked at, and confirmed -----------------------------------------------------

    def _uploaded(self, request: HttpRequest, upload: UploadedFile, at: datetime) -> HttpResponse:
        content = bytes(upload.content)
        reading = _read(content)
        preview = preview_registry(parsed=reading)
        if "bad_rows" in request.GET:
            return _bad_rows_file(upload, content, preview)
        if request.method == "POST" and not preview.bad_rows:
            try:
                done = import_registry(
                    parsed=reading, source=upload.name, by=author(request), at=at
                )
            except ServiceError as fault:
                messages.error(request, str(fault))
            else:
                delete_upload(upload)
                messages.success(request, _said(done))
                return HttpResponseRedirect(self.admin.list_url())
        return self._preview_page(request, upload, preview, at)

    def _preview_page(
        self, request: HttpRequest, upload: UploadedFile, preview: ImportPreview, at: datetime
    ) -> TemplateResponse:
        context = self.admin.page_context(request, None, at, crumb=self.title) | {
            "task": self,
            "back": self.url(),
            "upload": upload,
            "preview": preview,
            "new": preview.new[:MOST_LISTED],
            "bad_rows": preview.bad_rows[:MOST_LISTED],
            "bad_rows_url": f"{self.url()}?upload={upload.pk}&bad_rows",
        }
        return TemplateResponse(request, "staff/registry/import_preview.html", context)


def _read(content: bytes) -> ParsedFile:
    return read_taxpayers(io.BytesIO(content), taxpayer_notation(), MOST_ROWS)


def _said(done: ImportResult) -> str:
    new = ngettext(
        "{count} taxpayer is registered.", "{count} taxpayers are registered.", done.registered
    ).format(count=done.registered)
    if not done.unchanged:
        return new
    present = ngettext("{count} was already.", "{count} were already.", done.unchanged)
    return f"{new} {present.format(count=done.unchanged)}"


def _bad_rows_file(upload: UploadedFile, content: bytes, preview: ImportPreview) -> HttpResponse:
    """The bad rows as they were sent, each with its line and fault, to be mended and sent again."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    stem = upload.name.rpartition(".")[0] or upload.name
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"bad rows of {stem}.csv")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    response.write("\ufeff")  # so that a spreadsheet reads it as UTF-8
    csv.writer(response).writerows(_bad_rows(content, preview))
    return response


def _bad_rows(content: bytes, preview: ImportPreview) -> Iterator[list[Any]]:
    faults = {row.line: row.fault for row in preview.bad_rows}
    rows = read_cells(io.BytesIO(content), COLUMNS, OPTIONAL, IGNORED)
    _line, columns = next(rows)
    kept = [number for number, column in enumerate(columns) if column not in ("line", "fault")]
    yield ["line", "fault", *(columns[number] for number in kept)]
    for line, cells in rows:
        if line in faults:
            own = [cells[n] for n in range(len(cells)) if n in kept or n >= len(columns)]
            yield [line, escape_formula(faults[line]), *map(escape_formula, own)]
