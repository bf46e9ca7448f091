"""Changes as the pages show them: who changed what, when, from where and why (contract 4)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy

from identity.staff.actions import ACTIONS
from identity.staff.display import display_value, moment
from identity.staff.framework.related import changes_about, record_link
from taxpayers.credential_kind import by_kind
from taxpayers.models import Change, Intermediary, SystemUser, Taxpayer

MAX_RECENT = 20

# What is no column of the record, or is called otherwise there.
_FIELDS: dict[str, Any] = {
    "name": gettext_lazy("Name"),
    "is_active": gettext_lazy("Active"),
    "codes": gettext_lazy("Codes"),
    "form": gettext_lazy("File format"),
    "filters": gettext_lazy("Filters"),
    "rows": gettext_lazy("Rows"),
    "sha256": gettext_lazy("SHA-256 of the file"),
    "secret": gettext_lazy("Secret, key or certificate"),
    "allowed_networks": gettext_lazy("Allowed networks"),
    "secret_expires_at": gettext_lazy("Secret, key or certificate expires"),
    "secret_revoked_at": gettext_lazy("Secret, key or certificate revoked"),
    "kid": gettext_lazy("Key ID"),
    "certificate_name": gettext_lazy("Name in the certificate"),
    "username": gettext_lazy("User name"),
    "role": gettext_lazy("Role"),
    "second_step": gettext_lazy("Second step"),
    "recovery_codes_created_at": gettext_lazy("Recovery codes created"),
    "open_sessions": gettext_lazy("Open sessions"),
    "first_password_expires_at": gettext_lazy("First password expires"),
    "extra_permissions": gettext_lazy("Extra permissions"),
    "asked_role": gettext_lazy("Role asked for"),
    "asked_by": gettext_lazy("Asked by"),
    "waits_until": gettext_lazy("Waits for a second person until"),
    "deleted_before": gettext_lazy("Older than"),
    "deleted_logins": gettext_lazy("Logins deleted"),
    "deleted_months": gettext_lazy("Months of logins deleted"),
    "url": gettext_lazy("URL"),
    "permission_id": gettext_lazy("Permission"),
    "former_secret_until": gettext_lazy("Former secret signs until"),
}
# As they read in a change that names the kind of its credential.
_FIELDS_BY_KIND: dict[str, dict[str | None, Any]] = {
    "secret": by_kind(gettext_lazy("Secret"), gettext_lazy("Key"), gettext_lazy("Certificate")),
    "secret_expires_at": by_kind(
        gettext_lazy("Secret expires"),
        gettext_lazy("Key expires"),
        gettext_lazy("Certificate expires"),
    ),
    "secret_revoked_at": by_kind(
        gettext_lazy("Secret revoked"),
        gettext_lazy("Key revoked"),
        gettext_lazy("Certificate revoked"),
    ),
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A change as the pages show it."""

    row: Change
    action: Any
    differences: list[tuple[Any, str, str]]  # the title of each field, its value before, and after
    url: str = ""  # the page of its record; empty: it has none


def recent_changes(request: HttpRequest, record: Model) -> dict[str, Any] | None:
    """The latest changes of the record and of what belongs to it; None: this person sees none."""
    if not request.user.has_perm("taxpayers.view_change"):
        return None
    rows = list(changes_about(record)[: MAX_RECENT + 1])
    own = record._meta.model_name, str(record.pk)
    shown: dict[str, Any] = {
        "entries": [  # and whether it is of the record itself
            (entry_of(request, row), (row.object_type, row.object_id) == own)
            for row in rows[:MAX_RECENT]
        ]
    }
    if about := _about(record):
        query = {"about": about}
        if len(rows) > MAX_RECENT:
            shown["all_url"] = reverse("admin:taxpayers_change_report", query=query)
        if may_see_as_of(request):
            shown["as_of_url"] = reverse("admin:taxpayers_change_as_of", query=query)
    return shown


def may_see_as_of(request: HttpRequest) -> bool:
    """Whether this person may see the history and the records: the page *As of a date*."""
    return request.user.has_perms(
        ("taxpayers.view_change", "taxpayers.view_taxpayer", "taxpayers.view_systemuser")
    )


def _about(record: Model) -> str:
    """The record as the forms of the history name it; empty for kinds that they do not know."""
    match record:
        case Taxpayer():
            return str(record.identifier)
        case Intermediary():
            return str(record.taxpayer.identifier)
        case SystemUser():
            return record.client_id
        case _:
            return ""


def entry_of(request: HttpRequest, row: Change) -> HistoryEntry:
    """The change as the pages show it."""
    return HistoryEntry(row, action_of(row), list(_differences(row)), record_link(request, row))


def action_of(row: Change) -> Any:
    """The text for the action; an unknown action is shown as it is."""
    action = ACTIONS.get(row.action)
    return gettext_lazy(action.past_of(row.after.get("credential"))) if action else row.action


def _differences(row: Change) -> Iterator[tuple[Any, str, str]]:
    kind = row.after.get("credential")
    for field in dict.fromkeys([*row.before, *row.after]):
        before, after = row.before.get(field), row.after.get(field)
        if field == "credential":  # the titles of the others have it
            continue
        if field == "secret" or before != after:
            title = _FIELDS_BY_KIND.get(field, {}).get(kind) or _FIELDS.get(field)
            title = title or _column(row.object_type, field)
            yield title, _display(before), _display(after)


def _column(kind: str, name: str) -> str:
    """What its model calls it; an unknown name is shown as it is."""
    models = (model._meta for model in apps.get_models() if model._meta.model_name == kind)
    columns = (one for meta in models for one in meta.fields if one.name == name)
    return next((capfirst(str(one.verbose_name)) for one in columns), name)


def _display(value: Any) -> str:
    if isinstance(value, str) and "T" in value:
        with suppress(ValueError):
            if (at := datetime.fromisoformat(value)).tzinfo is not None:
                return moment(at)
    return display_value(value)
