"""The columns of the exported report; their names are for programs, not translated."""

import json
from typing import Any

from identity.staff.framework.export import Export, field
from taxpayers import actions
from taxpayers.models import Change


def _as_json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, sort_keys=True) if values else ""


def _task(row: Change) -> str:
    """The same for all changes of one task, and for no other."""
    return str(row.task_id or f"{row.at.isoformat()} {row.by}")


CHANGES = Export(
    actions.EXPORT_REGISTRY,
    (
        field("at"),
        ("who", lambda row: row.by),
        ("from", lambda row: row.address),
        field("action"),
        ("kind", lambda row: row.object_type),
        ("record_id", lambda row: row.object_id),
        ("record", lambda row: row.label),
        ("before", lambda row: _as_json(row.before)),
        ("after", lambda row: _as_json(row.after)),
        ("why", lambda row: row.reason),
        ("task", _task),
    ),
)
