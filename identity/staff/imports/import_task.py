"""Import of records from a file: upload, preview, confirm (contract 6, `import_registry`).

Nothing is registered before a person has seen the preview. The uploaded file is stored in the
database, so that any node can serve the next step.
"""

import io
from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.base import File
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from identity.staff.framework.export import as_csv, as_workbook
from identity.staff.framework.lists import RecordNotFound, Text, key_in
from identity.staff.framework.tasks import Task, TaskForm, author
from identity.staff.sessions import take_entries
from taxpayers.files.csv_reader import SPREADSHEET_SIGNATURE, escape_formula, read_cells
from taxpayers.files.rows import BESIDE_BAD_ROWS, IGNORED, Columns, ParsedFile
from taxpayers.files.spreadsheets import workbook_to_csv
from taxpayers.models import UploadedFile
from taxpayers.services import (
    IMPORT_KINDS,
    ImportKind,
    ImportPreview,
    ImportResult,
    ServiceError,
    one_import_at_a_time,
)
from taxpayers.services.uploads import find_upload, save_upload


def bad_rows_file(
    upload: UploadedFile, columns: Columns, content: bytes, preview: ImportPreview
) -> HttpResponseBase:
    """The rows with errors as they were uploaded, each with its line and error, to be corrected."""
    stem = upload.name.rpartition(".")[0] or upload.name
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"errors in {stem}.csv")
    return as_csv(_bad_rows(columns, content, preview), name)


def _bad_rows(columns: Columns, content: bytes, preview: ImportPreview) -> Iterator[list[str]]:
    faults = {row.line: row.fault for row in preview.bad_rows}
    ignored = (*IGNORED, *columns.ignored)
    rows = read_cells(io.BytesIO(content), columns.needed, columns.optional, ignored)
    _line, named = next(rows)
    own = [number for number, column in enumerate(named) if column not in IGNORED]
    yield [*BESIDE_BAD_ROWS, *(named[number] for number in own)]
    for line, cells in rows:
        if line in faults:
            sent = [cells[n] for n in range(len(cells)) if n in own or n >= len(named)]
            yield [str(line), escape_formula(faults[line]), *map(escape_formula, sent)]


MAX_FILE_BYTES = 16 << 20
MAX_ROWS = 100_000
MAX_LISTED = 100


class ImportForm(TaskForm):
    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"accept": ".csv,.xlsx"}),
    )

    def clean_file(self) -> "File[bytes]":
        file: File[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_FILE_BYTES:
            text = _("The file is larger than 16 MiB. Split it into smaller files.")
            raise forms.ValidationError(text)
        return file


class ImportTask(Task):
    kind_name: ClassVar[str]
    example: ClassVar[tuple[tuple[str, ...], ...]]  # rows in the order of the columns
    column_notes: ClassVar[Text]
    counted: ClassVar[Any]  # so many records of this kind, in words
    button_label = gettext_lazy("Import")
    form = ImportForm
    template = "staff/imports/upload.html"

    def __init_subclass__(cls) -> None:
        cls.operation = IMPORT_KINDS[cls.kind_name].operation
        super().__init_subclass__()

    @property
    def kind(self) -> ImportKind:
        return IMPORT_KINDS[self.kind_name]

    @property
    def max_rows(self) -> int:
        return min(self.kind.max_rows(), MAX_ROWS)

    def view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponseBase:  # type: ignore[override]  # a template is a file
        if not self.is_allowed(request):
            raise PermissionDenied
        at = timezone.now()
        if form := request.GET.get("template"):  # the names of the columns
            rows, name = iter([list(self.kind.columns.all)]), self.kind_name
            is_xlsx = form == "xlsx"
            return as_workbook(rows, f"{name}.xlsx") if is_xlsx else as_csv(rows, f"{name}.csv")
        if "upload" in request.GET:
            return self._preview(request, self._upload_or_404(request, at), at)
        upload_form = ImportForm(data=request.POST or None, files=request.FILES or None)
        if request.method == "POST" and upload_form.is_valid():
            try:
                upload = self._store(request, upload_form.cleaned_data["file"], at)
            except ServiceError as error:
                upload_form.add_error("file", str(error))
            else:
                return HttpResponseRedirect(f"{self.url()}?upload={upload.pk}")
        upload_form.restored = take_entries(request)
        return self.form_page(request, upload_form, at)

    def _store(self, request: HttpRequest, file: "File[bytes]", at: datetime) -> UploadedFile:
        content = file.read()
        if content.startswith(SPREADSHEET_SIGNATURE):
            with one_import_at_a_time():  # it takes the memory and the time of an import
                content = workbook_to_csv(io.BytesIO(content))
        self._read(content)  # refuses a file that is not a table before it is stored
        name = file.name or "file"
        return save_upload(name=name, content=content, by=author(request), at=at)

    def _read(self, content: bytes) -> ParsedFile[Any]:
        return self.kind.read(io.BytesIO(content), MAX_ROWS)

    def _upload_or_404(self, request: HttpRequest, at: datetime) -> UploadedFile:
        key = key_in(request.GET["upload"])
        upload = None if key is None else find_upload(key=key, by=author(request), at=at)
        if upload is None:
            raise RecordNotFound(_("This upload has expired. Upload the file again."))
        return upload

    def _preview(
        self, request: HttpRequest, upload: UploadedFile, at: datetime
    ) -> HttpResponseBase:
        content = bytes(upload.content)
        try:
            parsed = self._read(content)
            preview = self.kind.preview(parsed=parsed, at=at)
        except ServiceError as error:  # the file was sent to the import of another kind
            messages.error(request, str(error))
            return HttpResponseRedirect(self.url())
        if "bad_rows" in request.GET:
            return bad_rows_file(upload, self.kind.columns, content, preview)
        if request.method == "POST" and not preview.bad_rows:
            try:
                imported = self.kind.run(
                    parsed=parsed, source=upload.name, by=author(request), at=at
                )
            except ServiceError as error:
                messages.error(request, str(error))
            else:
                upload.delete()  # it was confirmed
                messages.success(request, self._success_message(imported))
                return HttpResponseRedirect(self.admin.list_url())
        return self._preview_page(request, upload, preview, at)

    def _preview_page(
        self, request: HttpRequest, upload: UploadedFile, preview: ImportPreview, at: datetime
    ) -> TemplateResponse:
        records = self.counted.format(count=len(preview.new))
        context = self.admin.page_context(request, None, at, breadcrumb=self.title) | {
            "task": self,
            "back": self.url(),
            "upload": upload,
            "preview": preview,
            "confirm": _("Register {records}").format(records=records),
            "new": [(row.line, self._named(row.shown)) for row in preview.new[:MAX_LISTED]],
            "bad_rows": preview.bad_rows[:MAX_LISTED],
            "bad_rows_url": f"{self.url()}?upload={upload.pk}&bad_rows",
        }
        return TemplateResponse(request, "staff/imports/preview.html", context)

    def example_rows(self) -> list[list[tuple[str, str]]]:
        """Each cell with the name of its column."""
        return [self._named(row) for row in self.example]

    def _named(self, cells: tuple[str, ...]) -> list[tuple[str, str]]:
        return list(zip(self.kind.columns.all, cells, strict=True))

    def _success_message(self, imported: ImportResult) -> str:
        new, old = imported.registered, imported.unchanged
        text = ngettext("{records} is registered.", "{records} are registered.", new)
        registered = text.format(records=self.counted.format(count=new))
        if not old:
            return registered
        text = ngettext("{count} was already registered.", "{count} were already registered.", old)
        return f"{registered} {text.format(count=old)}"
