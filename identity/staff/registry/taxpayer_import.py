"""Import of taxpayers from a file: upload, preview, confirm (contract 6, `import_registry`).

Nothing is registered before somebody has seen the preview. The uploaded file is stored in the
database, so that any node can serve the next step and the file is uploaded once only.
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
    one_import_at_a_time,
    preview_registry,
)
from taxpayers.services.uploads import delete_upload, find_upload, save_upload
from taxpayers.validation import taxpayer_notation

MAX_FILE_BYTES = 16 << 20
MAX_ROWS = 100_000
MAX_LISTED = 100
_KEY_DIGITS = 19  # of the largest integer in a database


class ImportForm(TaskForm):
    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"accept": ".csv,.xlsx"}),
        help_text=gettext_lazy("CSV (UTF-8) or XLSX, up to 16 MiB and 100,000 rows."),
    )

    def clean_file(self) -> "File[bytes]":
        file: File[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_FILE_BYTES:
            raise forms.ValidationError(
                _("The file is larger than 16 MiB. Split it into smaller files.")
            )
        return file


class ImportRegistry(Task):
    name = "import_registry"
    title = gettext_lazy("Import taxpayers")
    button_label = gettext_lazy("Import")
    description = gettext_lazy(
        "The first line names the columns. tin and name are required; rob and active (yes or no)"
        " are optional. You see a preview first. Then all rows are registered, or none."
    )
    icon = "upload_file"
    form = ImportForm
    template = "staff/registry/import.html"
    is_for_record = False

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        if not self.is_allowed(request):
            raise PermissionDenied
        at = timezone.now()
        if "upload" in request.GET:
            return self._preview(request, self._upload_or_404(request, at), at)
        form = ImportForm(data=request.POST or None, files=request.FILES or None)
        if request.method == "POST" and form.is_valid():
            try:
                upload = self._store(request, form.cleaned_data["file"], at)
            except ServiceError as error:
                form.add_error("file", str(error))
            else:
                return HttpResponseRedirect(f"{self.url()}?upload={upload.pk}")
        return self.form_page(request, None, form, at)

    # --- Upload -----------------------------------------------------------------------------

    def _store(self, request: HttpRequest, file: "File[bytes]", at: datetime) -> UploadedFile:
        content = file.read()
        if content.startswith(SPREADSHEET_SIGNATURE):
            with one_import_at_a_time():  # it takes the memory and the time of an import
                content = workbook_to_csv(io.BytesIO(content))
        _read(content)  # refuses a file that is not a table before it is stored
        name = file.name or "file"
        return save_upload(name=name, content=content, by=author(request), at=at)

    def _upload_or_404(self, request: HttpRequest, at: datetime) -> UploadedFile:
        key = request.GET["upload"]
        is_key = key.isdecimal() and len(key) < _KEY_DIGITS
        upload = find_upload(key=int(key), by=author(request), at=at) if is_key else None
        if upload is None:
            raise RecordNotFound(_("This upload has expired. Upload the file again."))
        return upload

    # --- Preview and confirmation -----------------------------------------------------------

    def _preview(self, request: HttpRequest, upload: UploadedFile, at: datetime) -> HttpResponse:
        content = bytes(upload.content)
        parsed = _read(content)
        preview = preview_registry(parsed=parsed)
        if "bad_rows" in request.GET:
            return _bad_rows_file(upload, content, preview)
        if request.method == "POST" and not preview.bad_rows:
            try:
                imported = import_registry(
                    parsed=parsed, source=upload.name, by=author(request), at=at
                )
            except ServiceError as error:
                messages.error(request, str(error))
            else:
                delete_upload(upload)
                messages.success(request, _success_message(imported))
                return HttpResponseRedirect(self.admin.list_url())
        return self._preview_page(request, upload, preview, at)

    def _preview_page(
        self, request: HttpRequest, upload: UploadedFile, preview: ImportPreview, at: datetime
    ) -> TemplateResponse:
        context = self.admin.page_context(request, None, at, breadcrumb=self.title) | {
            "task": self,
            "back": self.url(),
            "upload": upload,
            "preview": preview,
            "new": preview.new[:MAX_LISTED],
            "bad_rows": preview.bad_rows[:MAX_LISTED],
            "bad_rows_url": f"{self.url()}?upload={upload.pk}&bad_rows",
        }
        return TemplateResponse(request, "staff/registry/import_preview.html", context)


def _read(content: bytes) -> ParsedFile:
    return read_taxpayers(io.BytesIO(content), taxpayer_notation(), MAX_ROWS)


def _success_message(imported: ImportResult) -> str:
    new = ngettext(
        "{count} taxpayer is registered.", "{count} taxpayers are registered.", imported.registered
    ).format(count=imported.registered)
    if not imported.unchanged:
        return new
    unchanged = ngettext(
        "{count} was already registered.", "{count} were already registered.", imported.unchanged
    )
    return f"{new} {unchanged.format(count=imported.unchanged)}"


def _bad_rows_file(upload: UploadedFile, content: bytes, preview: ImportPreview) -> HttpResponse:
    """The rows with errors as they were uploaded, each with its line and error, to be corrected."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    stem = upload.name.rpartition(".")[0] or upload.name
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"errors in {stem}.csv")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    response.write("\ufeff")  # so that a spreadsheet reads it as UTF-8
    csv.writer(response).writerows(_bad_rows(content, preview))
    return response


def _bad_rows(content: bytes, preview: ImportPreview) -> Iterator[list[Any]]:
    faults = {row.line: row.fault for row in preview.bad_rows}
    rows = read_cells(io.BytesIO(content), COLUMNS, OPTIONAL, IGNORED)
    _line, columns = next(rows)
    own = [number for number, column in enumerate(columns) if column not in ("line", "fault")]
    yield ["line", "fault", *(columns[number] for number in own)]
    for line, cells in rows:
        if line in faults:
            sent = [cells[n] for n in range(len(cells)) if n in own or n >= len(columns)]
            yield [line, escape_formula(faults[line]), *map(escape_formula, sent)]
