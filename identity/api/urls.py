"""Every address of the management API. `identity.urls` has them unless SERVE=login."""

from django.urls import URLPattern, path

from identity.api.events import changes, webhooks
from identity.api.framework.json_body import JsonBody, MergePatchBody
from identity.api.framework.kinds import RecordKind
from identity.api.framework.records import ListView, RecordView
from identity.api.imports.view import ROW_KINDS, ImportView
from identity.api.openapi import description, no_such_address, problem_page
from identity.api.registry import (
    intermediaries,
    logins,
    permission_requests,
    permissions,
    system_users,
    taxpayers,
)
from identity.api.registry.history import history_of
from identity.management_api import BASE_PATH

_READ, _TASK = ("get", "head"), ("post",)


def _list(kind: RecordKind) -> URLPattern:
    methods = (*_READ, "post") if kind.create else _READ
    view = ListView.as_view(
        kind=kind, listing=kind.listing, task=kind.create, http_method_names=methods
    )
    return path(f"{BASE_PATH}/{kind.name}", view)


def _record(kind: RecordKind) -> URLPattern:
    methods, parsers = (*_READ, "patch") if kind.change else _READ, (JsonBody, MergePatchBody)
    view = RecordView.as_view(
        kind=kind, task=kind.change, http_method_names=methods, parser_classes=parsers
    )
    return path(f"{BASE_PATH}/{kind.name}/<str:{kind.parameter}>", view)


def _all(kind: RecordKind) -> list[URLPattern]:
    """A kind that changes: its tasks, and the lists of what belongs to one record."""
    record = f"{BASE_PATH}/{kind.name}/<str:{kind.parameter}>"
    history = history_of(kind.listing.name, kind.singular)
    return [
        _list(kind),
        _record(kind),
        *(
            path(
                f"{record}/{task.before}{task.name}",
                RecordView.as_view(kind=kind, task=task, http_method_names=_TASK),
            )
            for task in kind.tasks
        ),
        *(
            path(
                f"{record}/{name}",
                ListView.as_view(
                    kind=kind, listing=part, is_of_record=True, http_method_names=_READ
                ),
            )
            for name, part in (*kind.parts.items(), ("history", history))
        ),
    ]


records: list[URLPattern] = [
    *_all(taxpayers.KIND),
    *_all(intermediaries.KIND),
    _list(permissions.CODES),
    *_all(permissions.KIND),
    *_all(permission_requests.KIND),
    *_all(system_users.KIND),
    _list(logins.KIND),
    _record(logins.KIND),
    *(
        path(f"{BASE_PATH}/imports/{name}", ImportView.as_view(kind=kind))
        for name, kind in ROW_KINDS.items()
    ),
    path(f"{BASE_PATH}/changes", changes.ChangesView.as_view()),
    *_all(webhooks.KIND),
]
urlpatterns: list[URLPattern] = [
    *records,
    path(f"{BASE_PATH}/openapi.json", description(records)),
    path(f"{BASE_PATH}/problems/<str:kind>", problem_page),
    path(BASE_PATH, no_such_address),
    path(f"{BASE_PATH}/", no_such_address),
    path(f"{BASE_PATH}/<path:rest>", no_such_address),
]
