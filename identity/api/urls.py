"""Every address of the management API. `identity.urls` has them unless SERVE=login."""

from collections.abc import Iterable
from typing import Any

from django.urls import URLPattern, path

from identity.api.events import changes, webhooks
from identity.api.framework.json_body import JsonBody, MergePatchBody
from identity.api.framework.kinds import ApiTask, RecordKind
from identity.api.framework.records import Listing, ListView, RecordView
from identity.api.imports.view import ROW_KINDS, ImportView
from identity.api.openapi import description, no_such_address, problem_page
from identity.api.registry import (
    intermediaries,
    logins,
    permission_codes,
    permission_requests,
    permissions,
    system_user_records,
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


def _kind(module: Any, tasks: Iterable[ApiTask] = (), **parts: Listing) -> list[URLPattern]:
    """A kind that changes, by what its module has of it."""
    kind = module.KIND
    return [
        _list(kind, module.LISTING, getattr(module, "CREATE", None)),
        _record(kind, getattr(module, "CHANGE", None)),
        *_tasks(kind, tasks or module.TASKS),
        *(_part(kind, name, listing) for name, listing in parts.items()),
        _part(kind, "history", history_of(kind.name.replace("-", "_"), kind.singular)),
    ]


_OF_SYSTEM_USERS = (*system_user_tasks.TASKS, *system_user_records.CREDENTIAL_TASKS)
records: list[URLPattern] = [
    *_kind(taxpayers),
    *_kind(intermediaries),
    _list(permission_codes.KIND, permission_codes.LISTING),
    *_kind(permissions),
    *_kind(permission_requests),
    *_kind(system_users, _OF_SYSTEM_USERS, credentials=system_user_records.CREDENTIALS),
    _list(logins.KIND, logins.LISTING),
    _record(logins.KIND),
    *(
        path(f"{BASE_PATH}/imports/{name}", ImportView.as_view(kind=kind))
        for name, kind in ROW_KINDS.items()
    ),
    path(f"{BASE_PATH}/changes", changes.ChangesView.as_view()),
    *_kind(webhooks, deliveries=webhooks.DELIVERIES),
]
urlpatterns: list[URLPattern] = [
    *records,
    path(f"{BASE_PATH}/openapi.json", description(records)),
    path(f"{BASE_PATH}/problems/<str:kind>", problem_page),
    path(BASE_PATH, no_such_address),
    path(f"{BASE_PATH}/", no_such_address),
    path(f"{BASE_PATH}/<path:rest>", no_such_address),
]
