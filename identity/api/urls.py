"""Every address of the management API. `identity.urls` has them unless SERVE=login."""

from collections.abc import Iterable

from django.urls import URLPattern, path

from identity.api.events import changes, webhooks
from identity.api.framework.json_body import JsonBody, MergePatchBody
from identity.api.framework.kinds import ApiTask, RecordKind
from identity.api.framework.records import Listing, ListView, RecordView
from identity.api.imports.view import ROW_KINDS, ImportView
from identity.api.openapi import description, no_such_address, problem_page
from identity.api.registry import (
    credential_records,
    intermediaries,
    logins,
    permission_codes,
    permission_requests,
    permissions,
    system_user_tasks,
    system_users,
    taxpayers,
)
from identity.api.registry.history import history_of
from identity.management_api import BASE_PATH

_READ, _ADD, _CHANGE, _TASK = (
    ("get", "head"),
    ("get", "head", "post"),
    ("get", "head", "patch"),
    ("post",),
)


def _list(kind: RecordKind, listing: Listing, create: ApiTask | None = None) -> URLPattern:
    methods = _READ if create is None else _ADD
    view = ListView.as_view(kind=kind, listing=listing, task=create, http_method_names=methods)
    return path(f"{BASE_PATH}/{kind.name}", view)


def _record(kind: RecordKind, change: ApiTask | None = None) -> URLPattern:
    methods = _READ if change is None else _CHANGE
    view = RecordView.as_view(
        kind=kind, task=change, http_method_names=methods, parser_classes=(JsonBody, MergePatchBody)
    )
    return path(f"{BASE_PATH}/{kind.name}/<str:{kind.parameter}>", view)


def _tasks(kind: RecordKind, tasks: Iterable[ApiTask]) -> list[URLPattern]:
    return [
        path(
            f"{BASE_PATH}/{kind.name}/<str:{kind.parameter}>/{task.before}{task.name}",
            RecordView.as_view(kind=kind, task=task, http_method_names=_TASK),
        )
        for task in tasks
    ]


def _part(kind: RecordKind, name: str, listing: Listing) -> URLPattern:
    """A list of what belongs to one record."""
    view = ListView.as_view(kind=kind, listing=listing, is_of_record=True, http_method_names=_READ)
    return path(f"{BASE_PATH}/{kind.name}/<str:{kind.parameter}>/{name}", view)


def _history(kind: RecordKind) -> URLPattern:
    return _part(kind, "history", history_of(kind.name.replace("-", "_"), kind.singular))


records: list[URLPattern] = [
    _list(taxpayers.KIND, taxpayers.LISTING, taxpayers.CREATE),
    _record(taxpayers.KIND, taxpayers.CHANGE),
    *_tasks(taxpayers.KIND, taxpayers.TASKS),
    _history(taxpayers.KIND),
    _list(intermediaries.KIND, intermediaries.LISTING, intermediaries.CREATE),
    _record(intermediaries.KIND, intermediaries.CHANGE),
    *_tasks(intermediaries.KIND, intermediaries.TASKS),
    _history(intermediaries.KIND),
    _list(permission_codes.KIND, permission_codes.LISTING),
    _list(permissions.KIND, permissions.LISTING, permissions.CREATE),
    _record(permissions.KIND),
    *_tasks(permissions.KIND, permissions.TASKS),
    _history(permissions.KIND),
    _list(permission_requests.KIND, permission_requests.LISTING),
    _record(permission_requests.KIND),
    *_tasks(permission_requests.KIND, permission_requests.TASKS),
    _history(permission_requests.KIND),
    _list(system_users.KIND, system_users.LISTING, system_users.CREATE),
    _record(system_users.KIND, system_users.CHANGE),
    *_tasks(system_users.KIND, system_user_tasks.TASKS),
    *_tasks(system_users.KIND, credential_records.TASKS),
    _part(system_users.KIND, "credentials", credential_records.LISTING),
    _history(system_users.KIND),
    _list(logins.KIND, logins.LISTING),
    _record(logins.KIND),
    *(
        path(f"{BASE_PATH}/imports/{name}", ImportView.as_view(kind=kind))
        for name, kind in ROW_KINDS.items()
    ),
    path(f"{BASE_PATH}/changes", changes.ChangesView.as_view()),
    _list(webhooks.KIND, webhooks.LISTING, webhooks.CREATE),
    _record(webhooks.KIND, webhooks.CHANGE),
    *_tasks(webhooks.KIND, webhooks.TASKS),
    _part(webhooks.KIND, "deliveries", webhooks.DELIVERIES),
    _history(webhooks.KIND),
]
urlpatterns: list[URLPattern] = [
    *records,
    path(f"{BASE_PATH}/openapi.json", description(records)),
    path(f"{BASE_PATH}/problems/<str:kind>", problem_page),
    path(BASE_PATH, no_such_address),
    path(f"{BASE_PATH}/", no_such_address),
    path(f"{BASE_PATH}/<path:rest>", no_such_address),
]
