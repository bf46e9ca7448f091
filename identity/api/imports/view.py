"""`POST /imports/KIND`: the same import as that of a file, with the rows as JSON."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.fields import Body, Truth, pointer_of, values_of
from identity.api.framework.idempotency import Done, answer_once
from identity.api.framework.json_body import JsonBody
from identity.api.framework.kinds import described
from identity.api.framework.problem_answers import field_errors
from identity.api.framework.problems import FieldError, Problem
from identity.api.framework.view import ManagementView
from identity.api.registry.intermediaries import IntermediaryRowBody
from identity.api.registry.permissions import PermissionRowBody
from identity.api.registry.system_users import SystemUserRowBody
from identity.api.registry.taxpayers import NewTaxpayerBody
from taxpayers.duties import Duty
from taxpayers.files.row_kinds import IntermediaryRow, PermissionRow, SystemUserRow, TaxpayerRow
from taxpayers.files.rows import BadRow, ParsedFile, Row, bad_row
from taxpayers.services import IMPORT_KINDS, BadRowsError, ImportKind
from taxpayers.validation import ServiceError, validate_name

MOST_ROWS = 500


class TaxpayerRowBody(NewTaxpayerBody):
    """A taxpayer."""

    is_active = Truth(required=False, help_text="Left out: true.")


# What a value becomes in a row, whose fields have the names of the body's sources.
_EXACT: dict[str, Callable[[Any], Any]] = {
    "name": validate_name,
    "codes": lambda codes: tuple(sorted(set(codes))),
    "scopes": tuple,
}


# Of each import: its name, the body of a row, and the row.
IMPORTS: tuple[tuple[str, type[Body], type[Row]], ...] = (
    ("taxpayers", TaxpayerRowBody, TaxpayerRow),
    ("intermediaries", IntermediaryRowBody, IntermediaryRow),
    ("permissions", PermissionRowBody, PermissionRow),
    ("system_users", SystemUserRowBody, SystemUserRow),
)

_NOTE = (
    f"All rows or none, and at most {MOST_ROWS}. Safe to repeat: rows that are registered with the"
    " same values are left as they are. Each wrong row is in errors, by its pointer."
)
Faults = dict[int, Any]  # of each row that cannot be read, what its body says
_SOURCE = "of the management API"  # in the history, where a file has its name


class LargeJsonBody(JsonBody):
    most_bytes = 512 * 1024


class ImportResultRecord(serializers.Serializer[Any]):
    """What an import has done."""

    registered = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Registered before, with the same values.")


class ImportView(ManagementView):
    http_method_names = ("post",)
    parser_classes = (LargeJsonBody,)
    # Given by as_view, as IMPORTS has them.
    name: str = ""
    body: type[Body] = Body
    row: type[Row] = Row

    @property
    def kind(self) -> ImportKind:
        """The same import, of a file."""
        return IMPORT_KINDS[self.name]

    @property
    def duty(self) -> Duty:
        duty = self.kind.operation.duty
        assert duty is not None  # noqa: S101 - of every import
        return duty

    def post(self, request: Request) -> Response:
        rows, faults = self._read(request.data)

        def do() -> Done:
            result = self._import(self._parsed(rows, faults), faults)
            return Done(result, result)

        return answer_once(request, self.caller.token.client_id, self.caller.at, do)

    def _read(self, data: Any) -> tuple[dict[int, dict[str, Any]], Faults]:
        """The rows that can be read, and the faults of the others. Raises ValidationError."""
        try:
            return dict(enumerate(values_of(import_body(self.name, self.body), data)["rows"])), {}
        except ValidationError as fault:
            found: Any = fault.detail
            if found.keys() != {"rows"} or not isinstance(found["rows"], dict):
                raise
            given, faults = enumerate(data["rows"]), found["rows"]
        return {n: values_of(self.body, row) for n, row in given if n not in faults}, faults

    def _parsed(self, rows: dict[int, dict[str, Any]], faults: Faults) -> ParsedFile[Row]:
        """Each row, good or bad; a second one of the same record is bad."""
        parsed: ParsedFile[Row] = ParsedFile(bad_rows=[BadRow(number, "") for number in faults])
        first: dict[str, int] = {}
        for number, values in rows.items():
            try:
                exact = {
                    name: make(values[name]) for name, make in _EXACT.items() if name in values
                }
                row = self.row(number, **values | exact)
                if first.setdefault(row.key, number) != number:
                    raise ServiceError(f"{row.key} is already in row {first[row.key]}", "repeated")
                parsed.rows.append(row)
            except ServiceError as fault:
                parsed.bad_rows.append(bad_row(number, fault))
        return parsed

    def _import(self, parsed: ParsedFile[Row], faults: Faults) -> dict[str, int]:
        by, at = self.author, self.caller.at
        try:
            result = self.kind.run(parsed=parsed, source=_SOURCE, by=by, at=at)
        except BadRowsError as fault:
            errors = [one for row in fault.bad_rows for one in self._errors(row, faults)]
            raise Problem("invalid_fields", str(fault), errors) from None
        return {"registered": result.registered, "unchanged": result.unchanged}

    def _errors(self, row: BadRow, faults: Faults) -> Iterable[FieldError]:
        place = f"#/rows/{row.line}"
        if row.line in faults:
            return field_errors(faults[row.line], place)
        field = pointer_of(self.body, row.fields).removeprefix("#")
        return [FieldError(f"{row.fault}.", row.code, pointer=place + field)]

    def describe(self, method: str) -> dict[str, Any]:
        return {
            "id": f"import_{self.name}",
            **described(self.kind.operation, _NOTE),
            "tag": "imports",
            "body": import_body(self.name, self.body),
            "answer": ImportResultRecord,
        }


@cache
def import_body(name: str, row: type[Body]) -> type[Body]:
    """The body of an import, with the body of a row."""
    rows = serializers.ListField(child=row(), allow_empty=False, max_length=MOST_ROWS)
    words = name.replace("_", " ")
    return type(
        f"Import{words.title().replace(' ', '')}Body",
        (Body,),
        {"rows": rows, "__doc__": f"Many {words}."},
    )
