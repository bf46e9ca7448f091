"""A new record, checked but not stored: its service stores one, an import stores many at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from taxpayers.models import Change, GrantedPermission
from taxpayers.services.history import ChangeContext, change_of, record_change

_Codes = GrantedPermission.codes.through


@dataclass(frozen=True, slots=True)
class NewRecord:
    row: Any  # with a key: it was registered before with the same values
    fields: dict[str, Any]  # what the history stores; of a permission its `codes` too

    @property
    def is_new(self) -> bool:
        return self.row.pk is None


def save_new(record: NewRecord, context: ChangeContext) -> Any:
    """Its row, stored with its history unless it was before. Only inside a transaction."""
    if record.is_new:
        record.row.save(force_insert=True)
        _Codes._default_manager.bulk_create(_codes_of(record))
        record_change(record.row, context, after=record.fields)
    return record.row


def save_all_new(records: Sequence[NewRecord], context: ChangeContext) -> None:
    """Store new records of one kind, one statement for each table. Only inside a transaction."""
    if not records:
        return
    type(records[0].row)._default_manager.bulk_create([record.row for record in records])
    _Codes._default_manager.bulk_create(link for record in records for link in _codes_of(record))
    Change.objects.bulk_create(
        change_of(record.row, context, before={}, after=record.fields) for record in records
    )


def _codes_of(record: NewRecord) -> list[Any]:
    return [
        _Codes(grantedpermission_id=record.row.pk, permissioncode_id=code)
        for code in record.fields.get("codes", ())
    ]
